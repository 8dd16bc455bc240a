"""Scripts that no test runs import, at least."""

import importlib

import pytest

from tests.conftest import ROOT

FILES = (path.relative_to(ROOT) for path in (ROOT / "scripts").rglob("*.py"))
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in FILES}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports(module):
    importlib.import_module(module)
