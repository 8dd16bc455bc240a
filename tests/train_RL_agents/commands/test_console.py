"""Tables of commands."""

from train_RL_agents.commands.console import FILE_WIDTH, open_console


def test_a_table_in_a_file_is_not_cut_at_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert open_console().width == FILE_WIDTH
