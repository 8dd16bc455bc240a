// Worlds for tests: tensors of exact size on the heap, where the address sanitizer watches their
// ends, and rollouts that note a digest of everything written after each step.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/launch.h"

namespace marinenav::test {

/// The caller's configuration: what Python passes to the operators.
struct Inputs {
  std::vector<double> params = std::vector<double>(kParamCount);
  std::vector<double> radius_noise = std::vector<double>(kNoiseTable + 1);

  double& param(const std::string& name) {
    const std::vector<std::string> names = param_names();
    for (int i = 0; i < kParamCount; ++i)
      if (name == names[i]) return params[i];
    std::fprintf(stderr, "no parameter %s\n", name.c_str());
    std::abort();
  }
};

/// FNV-1a over bytes.
struct Digest {
  uint64_t value = 14695981039346656037ull;

  template <class X>
  void add(const X* data, int64_t count) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(data);
    for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(X)); ++i)
      value = (value ^ bytes[i]) * 1099511628211ull;
  }
};

struct Shape {
  int worlds, robots, buoys, cores, frames;
};

/// Bools with addresses, which std::vector<bool> does not give.
struct Flags {
  std::vector<char> bytes;
  explicit Flags(int64_t count) : bytes(count) {}
  bool* data() { return reinterpret_cast<bool*>(bytes.data()); }
};

template <class T>
struct ObservationRows {
  std::vector<T> ego, objects, mask;
  explicit ObservationRows(const Shape& n)
      : ego(size_t(n.worlds) * n.robots * n.frames * kEgoFeatures),
        objects(size_t(n.worlds) * n.robots * n.frames * kObjects * kObjectFeatures),
        mask(size_t(n.worlds) * n.robots * n.frames * kObjects) {}
  ObservationView<T> view() { return {ego.data(), objects.data(), mask.data()}; }
};

template <class T>
struct Worlds {
  Shape n;
  int stride;
  Params<T> params;
  std::vector<T> robot, buoy, core, outcome, stats, stage, radius_noise, reward, continuous;
  std::vector<int32_t> status, bad, world;
  std::vector<int64_t> discrete;
  ObservationRows<T> even, odd;
  Flags acted, terminated, truncated, alive, done, world_terminated, world_truncated;

  Worlds(const Inputs& inputs, const Shape& shape)
      : n(shape),
        stride((n.worlds + kRowAlignment - 1) / kRowAlignment * kRowAlignment),
        params(Params<T>::from_flat(inputs.params.data())),
        robot(size_t(kRobotFields) * n.robots * stride),
        buoy(size_t(3) * n.buoys * stride),
        core(size_t(3) * n.cores * stride),
        outcome(size_t(kOutcomeFields) * stride),
        stage({T(n.robots), T(n.cores), T(n.buoys), T(20), T(n.robots - 1), T(0), T(n.buoys), T(30),
               T(2), T(n.cores), T(0), T(10)}),
        radius_noise(inputs.radius_noise.begin(), inputs.radius_noise.end()),
        reward(size_t(n.worlds) * n.robots),
        continuous(size_t(n.worlds) * n.robots * 2),
        status(size_t(n.robots) * stride),
        bad(size_t(n.robots) * stride),
        world(size_t(kWorldFields) * stride),
        discrete(size_t(n.worlds) * n.robots),
        even(n),
        odd(n),
        acted(reward.size()),
        terminated(reward.size()),
        truncated(reward.size()),
        alive(reward.size()),
        done(n.worlds),
        world_terminated(n.worlds),
        world_truncated(n.worlds) {
    stats.resize(stage.size() / kStageFields * kStatFields * stride);
    for (int w = 0; w < n.worlds; ++w)
      world[size_t(kNextStage) * stride + w] = w % static_cast<int>(stage.size() / kStageFields);
  }

  State<T> state(uint32_t seed) {
    return {n.worlds,       stride,       n.robots,     n.buoys,
            n.cores,        static_cast<int>(stage.size() / kStageFields),
            robot.data(),   status.data(), bad.data(),  buoy.data(),
            core.data(),    world.data(), outcome.data(), stats.data(),
            stage.data(),   radius_noise.data(), seed,   7u,
            100u};
  }
  StepView<T> results() {
    return {reward.data(),      acted.data(),          terminated.data(), truncated.data(),
            alive.data(),        done.data(),           world_terminated.data(),
            world_truncated.data()};
  }

  /// All bits of the worlds that exist: a padded world's lanes may hold anything.
  uint64_t digest() {
    Digest d;
    auto rows = [&](const auto& tensor) {
      for (size_t at = 0; at < tensor.size(); at += stride) d.add(tensor.data() + at, n.worlds);
    };
    rows(robot), rows(buoy), rows(core), rows(outcome), rows(stats), rows(status), rows(bad),
        rows(world);
    auto whole = [&](const auto& tensor) { d.add(tensor.data(), tensor.size()); };
    for (ObservationRows<T>* o : {&even, &odd}) whole(o->ego), whole(o->objects), whole(o->mask);
    whole(reward);
    for (Flags* f : {&acted, &terminated, &truncated, &alive, &done, &world_terminated,
                     &world_truncated})
      whole(f->bytes);
    return d.value;
  }
};

/// A number in [0, 1) that depends on its arguments only.
inline double hashed(uint32_t a, uint32_t b) {
  return uniform<double>(philox(Philox4<uint32_t>{a, b, 0, 0}, 11, 12).w0);
}

/// What a rollout did: a digest after every operation, and how its episodes ended.
struct Rollout {
  std::vector<uint64_t> digests;
  int64_t reached = 0, collided = 0, timeouts = 0;
};

/// Steps worlds with random actions and resets the finished ones; digests after every operation.
///
/// V is the lane type of the step, the launcher decides the order.
template <class V, class Launcher, class T = Scalar<V>>
Rollout rollout(const Inputs& inputs, const Shape& shape, bool discrete, int steps,
                const Launcher& launcher, uint32_t seed = 3) {
  Worlds<T> worlds(inputs, shape);
  const State<T> s = worlds.state(seed);
  const ActionView<T> action{discrete ? nullptr : worlds.continuous.data(),
                             discrete ? worlds.discrete.data() : nullptr};
  Rollout result;
  run_reset<V>(launcher, s, worlds.params, nullptr, worlds.odd.view(), shape.frames,
               worlds.alive.data());
  result.digests.push_back(worlds.digest());
  for (int t = 0; t < steps; ++t) {
    for (size_t i = 0; i < worlds.discrete.size(); ++i) {
      const uint32_t at = static_cast<uint32_t>(i);
      worlds.discrete[i] = static_cast<int64_t>(hashed(t, at) * kDiscreteActions);
      worlds.continuous[2 * i] = static_cast<T>(hashed(t, at) * 2.4 - 1.2);
      worlds.continuous[2 * i + 1] = static_cast<T>(hashed(t, at + 1000) * 2.4 - 1.2);
    }
    ObservationRows<T>& before = t % 2 == 0 ? worlds.odd : worlds.even;
    ObservationRows<T>& after = t % 2 == 0 ? worlds.even : worlds.odd;
    run_step<V>(launcher, s, worlds.params, action, before.view(), after.view(), shape.frames,
                worlds.results());
    result.digests.push_back(worlds.digest());
    run_reset<V>(launcher, s, worlds.params, worlds.done.data(), after.view(), shape.frames,
                 worlds.alive.data());
    result.digests.push_back(worlds.digest());
  }
  auto booked = [&](int field) {
    T sum = T(0);
    for (int stage = 0; stage < s.stages; ++stage)
      for (int w = 0; w < s.worlds; ++w) sum += *s.stat_at(stage, field, w);
    return static_cast<int64_t>(sum);
  };
  result.reached = booked(kReachedSum);
  result.collided = booked(kCollidedSum);
  result.timeouts = booked(kTimeouts);
  return result;
}

}  // namespace marinenav::test
