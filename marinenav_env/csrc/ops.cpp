// Operator schemas, and the operators that take no tensor.
#include <torch/library.h>

#include "envs.h"
#include "kernel/describe.h"
#include "marine/plans/ops.h"

namespace marinenav {
namespace {

#define MN_STATE "str env, Tensor(a!)[] state, Tensor[] tables, "
#define MN_STATE_READ "str env, Tensor[] state, Tensor[] tables, "
#define MN_CONTEXT "Tensor params, int seed, int first_world"

template <class... Env>
std::string names_of(EnvList<Env...>) {
  std::string names;
  ((names += Env::kName + std::string(" ")), ...);
  return names;
}

std::string description_of(const std::string& name) {
  std::string text;
  with_env(Envs{}, name, [&](auto tag) { text = describe<typename decltype(tag)::Type>(); });
  return text;
}

}  // namespace

TORCH_LIBRARY(marinenav, m) {
  m.def("step(" MN_STATE "Tensor action, Tensor[] previous, Tensor(b!)[] observation, "
        "Tensor(c!)[] results, " MN_CONTEXT ") -> ()");
  m.def("unroll(" MN_STATE "Tensor actions, Tensor[] previous, Tensor(b!)[] observation, "
        "Tensor(c!)[] results, " MN_CONTEXT ") -> ()");
  m.def("reset(" MN_STATE "Tensor? only, Tensor(b!)[] observation, Tensor(c!) alive, " MN_CONTEXT
        ", bool skip_if_empty) -> ()");
  m.def("observe(" MN_STATE "Tensor? only, Tensor(b!)[] observation, " MN_CONTEXT ") -> ()");
  m.def("write_row(Tensor(a!)[] rings, Tensor[] parts, int[] counts, Tensor position) -> ()");
  m.def("find_slots(Tensor[] levels, Tensor running, Tensor target) -> (Tensor, Tensor)");
  m.def("windows(Tensor index, Tensor flags, Tensor reward, Tensor position, Tensor discounts) "
        "-> (Tensor, Tensor, Tensor)");
  m.def("noisy_input(Tensor noise, Tensor x) -> Tensor");
  m.def("noisy_output(Tensor noise, Tensor spread, Tensor mean, Tensor bias_spread, Tensor bias) "
        "-> Tensor");
  m.def("water(" MN_STATE_READ "Tensor position, Tensor(a!) velocity, Tensor params) -> ()");
  m.def("plan_actions(str env, Tensor[] observation, Tensor action, Tensor(a!)[] plans, "
        "Tensor(b!)[] seen, Tensor? shown, Tensor params, float closer, int first, "
        "int decisions) -> ()");
  m.def("plan_courses(str env, Tensor[] observation, Tensor courses, Tensor(a!) danger, "
        "Tensor(b!) remaining, Tensor params, float[] costs) -> ()");
  m.def("course_params() -> str", &course_params);
  m.def("environments() -> str", []() { return names_of(Envs{}); });
  m.def("describe(str env) -> str", &description_of);
  m.def("row_alignment() -> int", []() -> int64_t { return kRowAlignment; });
  m.def("philox(Tensor counter, int key0, int key1) -> Tensor");
}

/// Nothing here has a gradient; without this torch looks at every tensor of a call for one.
TORCH_LIBRARY_IMPL(marinenav, Autograd, m) {
  for (const char* name : {"step", "unroll", "reset", "observe", "write_row", "find_slots",
                           "windows", "noisy_input", "noisy_output", "water", "plan_actions",
                           "plan_courses", "philox"})
    m.impl(name, torch::CppFunction::makeFallthrough());
}

}  // namespace marinenav
