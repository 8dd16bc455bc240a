// The operators' bodies, once for every device: check the tensors, make views, run the phases.
#pragma once

#include <ATen/ops/empty_like.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/ArrayRef.h>
#include <torch/library.h>

#include "core/launch.h"

namespace marinenav {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

/// A named operator argument and what it must be.
struct Checker {
  c10::Device device;
  c10::ScalarType real;

  void operator()(const Tensor& t, const char* name, c10::ScalarType dtype,
                  c10::IntArrayRef shape) const {
    TORCH_CHECK(t.device() == device, "marinenav: `", name, "` is on ", t.device(),
                ", expected ", device, ", where the simulator's state is");
    TORCH_CHECK(t.scalar_type() == dtype, "marinenav: `", name, "` has dtype ", t.scalar_type(),
                ", expected ", dtype);
    TORCH_CHECK(t.sizes() == shape, "marinenav: `", name, "` has shape ", t.sizes(),
                ", expected ", shape);
    TORCH_CHECK(t.is_contiguous(), "marinenav: `", name, "` must be contiguous");
  }
};

inline int64_t padded(int64_t worlds) {
  return (worlds + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

template <class T>
T* pointer(const Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}
template <class T>
T* pointer(const OptionalTensor& t) {
  return t.has_value() ? pointer<T>(*t) : nullptr;
}

/// The tensors every operator takes.
struct StateTensors {
  const Tensor &robot, &status, &bad, &buoy, &vortex, &world, &outcome, &stats, &stage,
      &radius_noise;

  int64_t robots() const { return status.dim() == 2 ? status.size(0) : -1; }

  Checker check(int64_t worlds) const {
    const Checker check{robot.device(), robot.scalar_type()};
    TORCH_CHECK(check.real == c10::kFloat || check.real == c10::kDouble,
                "marinenav: `robot` has dtype ", check.real, ", expected float32 or float64");
    TORCH_CHECK(status.dim() == 2 && buoy.dim() == 3 && vortex.dim() == 3 && stage.dim() == 2,
                "marinenav: `status` and `stage` need 2 dimensions, `buoy` and `vortex` 3");
    const int64_t stride = padded(worlds), r = robots();
    check(robot, "robot", check.real, {kRobotFields, r, stride});
    check(status, "status", c10::kInt, {r, stride});
    check(bad, "bad", c10::kInt, {r, stride});
    check(buoy, "buoy", check.real, {3, buoy.size(1), stride});
    check(vortex, "vortex", check.real, {3, vortex.size(1), stride});
    check(world, "world", c10::kInt, {kWorldFields, stride});
    check(outcome, "outcome", check.real, {kOutcomeFields, stride});
    check(stage, "stage", check.real, {stage.size(0), kStageFields});
    check(radius_noise, "radius_noise", check.real, {kNoiseTable + 1});
    if (stats.numel() > 0)
      check(stats, "stats", check.real, {stage.size(0), kStatFields, stride});
    return check;
  }

  template <class T>
  State<T> view(int64_t worlds, int64_t seed, int64_t first_world) const {
    return {static_cast<int>(worlds), static_cast<int>(padded(worlds)),
            static_cast<int>(robots()), static_cast<int>(buoy.size(1)),
            static_cast<int>(vortex.size(1)), static_cast<int>(stage.size(0)),
            pointer<T>(robot), pointer<int32_t>(status), pointer<int32_t>(bad), pointer<T>(buoy),
            pointer<T>(vortex), pointer<int32_t>(world), pointer<T>(outcome),
            stats.numel() > 0 ? pointer<T>(stats) : nullptr, pointer<T>(stage),
            pointer<T>(radius_noise), static_cast<uint32_t>(seed),
            static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32),
            static_cast<uint32_t>(first_world)};
  }
};

struct ObservationTensors {
  const Tensor &ego, &objects, &mask;

  int64_t frames() const {
    TORCH_CHECK(ego.dim() == 4, "marinenav: `ego` needs shape [W, R, frames, 7], got ",
                ego.sizes());
    return ego.size(2);
  }
  void check(const Checker& check, int64_t worlds, int64_t robots) const {
    const int64_t f = frames();
    check(ego, "ego", check.real, {worlds, robots, f, kEgoFeatures});
    check(objects, "objects", check.real, {worlds, robots, f, kObjects, kObjectFeatures});
    check(mask, "mask", check.real, {worlds, robots, f, kObjects});
  }
  template <class T>
  ObservationView<T> view() const {
    return {pointer<T>(ego), pointer<T>(objects), pointer<T>(mask)};
  }
};

template <class T>
Params<T> params_from(c10::ArrayRef<double> flat) {
  TORCH_CHECK(flat.size() == kParamCount, "marinenav: `params` has ", flat.size(),
              " entries, expected ", kParamCount, " (see param_names)");
  return Params<T>::from_flat(flat.data());
}

/// Calls body(T{}) with the state's number type.
template <class Body>
void dispatch(const Tensor& robot, const Body& body) {
  if (robot.scalar_type() == c10::kFloat) {
    body(float{});
  } else {
    body(double{});
  }
}

inline void check_mask(const Checker& check, const OptionalTensor& only, int64_t worlds) {
  if (only.has_value()) check(*only, "only", c10::kBool, {worlds});
}

/// Older frames are copied from the step before: written in place they would read themselves.
inline void check_apart(const Tensor& now, const Tensor& previous, const char* name) {
  TORCH_CHECK(now.data_ptr() != previous.data_ptr(), "marinenav: with stacked frames `", name,
              "` and `previous_", name, "` must not share memory: give two sets of buffers");
}

template <class Backend>
void step(const Tensor& robot, const Tensor& status, const Tensor& bad, const Tensor& buoy,
          const Tensor& vortex, const Tensor& world, const Tensor& outcome, const Tensor& stats,
          const Tensor& stage, const Tensor& radius_noise, const Tensor& action,
          const Tensor& previous_ego, const Tensor& previous_objects, const Tensor& previous_mask,
          const Tensor& ego, const Tensor& objects, const Tensor& mask, const Tensor& reward,
          const Tensor& acted, const Tensor& terminated, const Tensor& truncated, const Tensor& alive,
          const Tensor& done, const Tensor& world_terminated, const Tensor& world_truncated,
          c10::ArrayRef<double> params, int64_t seed, int64_t first_world) {
  const StateTensors tensors{robot, status, bad, buoy, vortex, world, outcome, stats, stage,
                             radius_noise};
  const ObservationTensors now{ego, objects, mask};
  const ObservationTensors before{previous_ego, previous_objects, previous_mask};
  const int64_t worlds = ego.size(0), robots = tensors.robots();
  const Checker check = tensors.check(worlds);
  now.check(check, worlds, robots);
  before.check(check, worlds, robots);
  if (now.frames() > 1) {
    check_apart(ego, previous_ego, "ego");
    check_apart(objects, previous_objects, "objects");
    check_apart(mask, previous_mask, "mask");
  }
  const bool discrete = action.scalar_type() == c10::kLong;
  if (discrete) {
    check(action, "action", c10::kLong, {worlds, robots});
  } else {
    check(action, "action", check.real, {worlds, robots, 2});
  }
  check(reward, "reward", check.real, {worlds, robots});
  check(acted, "acted", c10::kBool, {worlds, robots});
  check(terminated, "terminated", c10::kBool, {worlds, robots});
  check(truncated, "truncated", c10::kBool, {worlds, robots});
  check(alive, "alive", c10::kBool, {worlds, robots});
  check(done, "done", c10::kBool, {worlds});
  check(world_terminated, "world_terminated", c10::kBool, {worlds});
  check(world_truncated, "world_truncated", c10::kBool, {worlds});
  const c10::DeviceGuard guard(robot.device());
  dispatch(robot, [&](auto real) {
    using T = decltype(real);
    const ActionView<T> actions{discrete ? nullptr : pointer<T>(action),
                                discrete ? pointer<int64_t>(action) : nullptr};
    const StepView<T> out{pointer<T>(reward), pointer<bool>(acted), pointer<bool>(terminated),
                          pointer<bool>(truncated), pointer<bool>(alive), pointer<bool>(done),
                          pointer<bool>(world_terminated), pointer<bool>(world_truncated)};
    run_step<typename Backend::template Lanes<T>>(
        Backend::launcher(), tensors.view<T>(worlds, seed, first_world), params_from<T>(params),
        actions, before.view<T>(), now.view<T>(), static_cast<int>(now.frames()), out);
  });
}

template <class Backend>
void reset(const Tensor& robot, const Tensor& status, const Tensor& bad, const Tensor& buoy,
           const Tensor& vortex, const Tensor& world, const Tensor& outcome, const Tensor& stats,
           const Tensor& stage, const Tensor& radius_noise, const OptionalTensor& only,
           const Tensor& ego, const Tensor& objects, const Tensor& mask, const Tensor& alive,
           c10::ArrayRef<double> params, int64_t seed, int64_t first_world, bool skip_if_empty) {
  const StateTensors tensors{robot, status, bad, buoy, vortex, world, outcome, stats, stage,
                             radius_noise};
  const ObservationTensors now{ego, objects, mask};
  const int64_t worlds = ego.size(0), robots = tensors.robots();
  const Checker check = tensors.check(worlds);
  now.check(check, worlds, robots);
  check(alive, "alive", c10::kBool, {worlds, robots});
  check_mask(check, only, worlds);
  if (skip_if_empty && only.has_value() && Backend::is_empty(*only)) return;
  const c10::DeviceGuard guard(robot.device());
  dispatch(robot, [&](auto real) {
    using T = decltype(real);
    run_reset<typename Backend::template Lanes<T>>(
        Backend::launcher(), tensors.view<T>(worlds, seed, first_world), params_from<T>(params),
        pointer<bool>(only), now.view<T>(), static_cast<int>(now.frames()), pointer<bool>(alive));
  });
}

template <class Backend>
void observe(const Tensor& robot, const Tensor& status, const Tensor& bad, const Tensor& buoy,
             const Tensor& vortex, const Tensor& world, const Tensor& outcome, const Tensor& stats,
             const Tensor& stage, const Tensor& radius_noise, const OptionalTensor& only,
             const Tensor& ego, const Tensor& objects, const Tensor& mask,
             c10::ArrayRef<double> params, int64_t seed, int64_t first_world) {
  const StateTensors tensors{robot, status, bad, buoy, vortex, world, outcome, stats, stage,
                             radius_noise};
  const ObservationTensors now{ego, objects, mask};
  const int64_t worlds = ego.size(0), robots = tensors.robots();
  const Checker check = tensors.check(worlds);
  now.check(check, worlds, robots);
  check_mask(check, only, worlds);
  const c10::DeviceGuard guard(robot.device());
  dispatch(robot, [&](auto real) {
    using T = decltype(real);
    run_observe<typename Backend::template Lanes<T>>(
        Backend::launcher(), tensors.view<T>(worlds, seed, first_world), params_from<T>(params),
        pointer<bool>(only), now.view<T>(), static_cast<int>(now.frames()));
  });
}

/// Philox4x32-10 of counters [N, 4] (int64 holding 32-bit words), for known-answer tests.
struct PhiloxPhase {
  using Value = float;
  static constexpr bool kPerRobot = false;
  const int64_t* counter;
  int64_t* words;
  uint32_t key0, key1;

  MN_HD void operator()(int, int i) const {
    const int64_t* c = counter + int64_t{i} * 4;
    const Philox4<uint32_t> w = philox(
        Philox4<uint32_t>{static_cast<uint32_t>(c[0]), static_cast<uint32_t>(c[1]),
                          static_cast<uint32_t>(c[2]), static_cast<uint32_t>(c[3])},
        key0, key1);
    int64_t* out = words + int64_t{i} * 4;
    out[0] = w.w0, out[1] = w.w1, out[2] = w.w2, out[3] = w.w3;
  }
};

template <class Backend>
Tensor philox_words(const Tensor& counter, int64_t key0, int64_t key1) {
  TORCH_CHECK(counter.dim() == 2, "marinenav: `counter` must be [N, 4], got ", counter.sizes());
  const Checker check{counter.device(), c10::kLong};
  check(counter, "counter", c10::kLong, {counter.size(0), 4});
  for (const int64_t word : {key0, key1})
    TORCH_CHECK(word >> 32 == 0, "marinenav: `key` holds ", word,
                ", which is no 32-bit word: give 0 to 4294967295");
  const c10::DeviceGuard guard(counter.device());
  Tensor words = at::empty_like(counter);
  Backend::launcher()(static_cast<int>(counter.size(0)), 1,
                      PhiloxPhase{pointer<int64_t>(counter), pointer<int64_t>(words),
                                  static_cast<uint32_t>(key0), static_cast<uint32_t>(key1)});
  return words;
}

template <class Backend>
void register_kernels(torch::Library& m) {
  m.impl("step", &step<Backend>);
  m.impl("reset", &reset<Backend>);
  m.impl("observe", &observe<Backend>);
  m.impl("philox", &philox_words<Backend>);
}

}  // namespace marinenav
