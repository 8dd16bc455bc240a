// Operator schemas, and the operators that take no tensor.
#include <torch/library.h>

#include <string>

#include "core/params.h"
#include "core/state.h"

namespace marinenav {
namespace {

#define MN_STATE_READ \
  "Tensor buoy, Tensor vortex, Tensor(d!) world, Tensor(e!) outcome, Tensor(f!) stats, " \
  "Tensor stage, Tensor radius_noise, "
#define MN_OBSERVATION "Tensor(g!) ego, Tensor(h!) objects, Tensor(i!) mask, "
#define MN_CONTEXT "float[] params, int seed, int first_world"

std::string joined_param_names() {
  std::string names;
  for (const std::string& name : param_names()) names += name + ' ';
  return names;
}

/// Field names of the state tensor `of`, and of the other enumerations in core/state.h.
std::string field_names(const std::string& of) {
  if (of == "robot") return kRobotFieldNames;
  if (of == "world") return kWorldFieldNames;
  if (of == "outcome") return kOutcomeFieldNames;
  if (of == "stats") return kStatFieldNames;
  if (of == "stage") return kStageFieldNames;
  TORCH_CHECK(false, "marinenav: no fields called `", of, "`");
}

}  // namespace

TORCH_LIBRARY(marinenav, m) {
  m.def(
      "step(Tensor(a!) robot, Tensor(b!) status, Tensor(c!) bad, " MN_STATE_READ
      "Tensor action, Tensor previous_ego, Tensor previous_objects, Tensor previous_mask, "
      MN_OBSERVATION
      "Tensor(j!) reward, Tensor(k!) acted, Tensor(l!) terminated, Tensor(m!) truncated, Tensor(n!) alive, "
      "Tensor(o!) done, Tensor(p!) world_terminated, Tensor(q!) world_truncated, " MN_CONTEXT ") -> ()");
  m.def(
      "reset(Tensor(a!) robot, Tensor(b!) status, Tensor bad, Tensor(c!) buoy, Tensor(j!) vortex, "
      "Tensor(d!) world, Tensor outcome, Tensor stats, Tensor stage, Tensor radius_noise, "
      "Tensor? only, " MN_OBSERVATION "Tensor(k!) alive, " MN_CONTEXT
      ", bool skip_if_empty) -> ()");
  m.def(
      "observe(Tensor(a!) robot, Tensor status, Tensor bad, Tensor buoy, Tensor vortex, "
      "Tensor world, Tensor outcome, Tensor stats, Tensor stage, Tensor radius_noise, "
      "Tensor? only, " MN_OBSERVATION MN_CONTEXT ") -> ()");
  m.def("param_names() -> str", &joined_param_names);
  m.def("field_names(str of) -> str", &field_names);
  m.def("row_alignment() -> int", []() -> int64_t { return kRowAlignment; });
  m.def("noise_table_size() -> int", []() -> int64_t { return kNoiseTable + 1; });
  m.def("philox(Tensor counter, int key0, int key1) -> Tensor");
}

}  // namespace marinenav
