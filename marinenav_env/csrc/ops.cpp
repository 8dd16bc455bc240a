// Operator schemas, and the operators that need no device.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <string>

#include "core/params.h"
#include "core/philox.h"

namespace marinenav {
namespace {

#define MN_STATE_READ \
  "Tensor buoy, Tensor core, Tensor(d!) world, Tensor(e!) outcome, Tensor(f!) stats, " \
  "Tensor stage, Tensor radius_noise, "
#define MN_OBSERVATION "Tensor(g!) ego, Tensor(h!) objects, Tensor(i!) mask, "
#define MN_CONTEXT "float[] params, int seed, int first_world"

std::string param_names() {
  std::string names;
  for (const char* name : kParamNames) {
    if (!names.empty()) names += ' ';
    names += name;
  }
  return names;
}

/// Philox4x32-10 of counters [N, 4] (int64 holding 32-bit words), for known-answer tests.
at::Tensor philox_words(const at::Tensor& counter, int64_t key0, int64_t key1) {
  TORCH_CHECK(counter.dim() == 2 && counter.size(1) == 4 && counter.scalar_type() == c10::kLong,
              "marinenav: `counter` must be int64 [N, 4], got ", counter.scalar_type(), " ",
              counter.sizes());
  const at::Tensor in = counter.contiguous();
  at::Tensor out = at::empty_like(in);
  const int64_t* c = in.const_data_ptr<int64_t>();
  int64_t* w = out.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < in.size(0); ++i, c += 4, w += 4) {
    const Philox4<uint32_t> words = philox(
        Philox4<uint32_t>{static_cast<uint32_t>(c[0]), static_cast<uint32_t>(c[1]),
                          static_cast<uint32_t>(c[2]), static_cast<uint32_t>(c[3])},
        static_cast<uint32_t>(key0), static_cast<uint32_t>(key1));
    w[0] = words.w0, w[1] = words.w1, w[2] = words.w2, w[3] = words.w3;
  }
  return out;
}

}  // namespace

TORCH_LIBRARY(marinenav, m) {
  m.def(
      "step(Tensor(a!) robot, Tensor(b!) status, Tensor(c!) bad, " MN_STATE_READ
      "Tensor action, Tensor previous_ego, Tensor previous_objects, Tensor previous_mask, "
      MN_OBSERVATION
      "Tensor(j!) reward, Tensor(k!) acted, Tensor(l!) ended, Tensor(m!) cut, Tensor(n!) live, "
      "Tensor(o!) done, Tensor(p!) terminated, Tensor(q!) truncated, " MN_CONTEXT ") -> ()");
  m.def(
      "reset(Tensor(a!) robot, Tensor(b!) status, Tensor bad, Tensor(c!) buoy, Tensor(j!) core, "
      "Tensor(d!) world, Tensor outcome, Tensor stats, Tensor stage, Tensor radius_noise, "
      "Tensor? only, " MN_OBSERVATION "Tensor(k!) live, " MN_CONTEXT
      ", bool skip_if_empty) -> ()");
  m.def(
      "observe(Tensor(a!) robot, Tensor status, Tensor bad, Tensor buoy, Tensor core, "
      "Tensor world, Tensor outcome, Tensor stats, Tensor stage, Tensor radius_noise, "
      "Tensor? only, " MN_OBSERVATION MN_CONTEXT ") -> ()");
  m.def("param_names() -> str", &param_names);
  m.def("philox(Tensor counter, int key0, int key1) -> Tensor");
}

TORCH_LIBRARY_IMPL(marinenav, CPU, m) { m.impl("philox", &philox_words); }

}  // namespace marinenav
