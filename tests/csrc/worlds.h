// Worlds for tests: tensors of exact size on the heap, where the address sanitizer watches their
// ends, and rollouts that note a digest of everything written after each step.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "marine/marine.h"

namespace marinenav::test {

using Env = Marine;
using Robot = Env::Robot;
using World = Env::World;
using Stat = Env::Stat;
template <class T>
using State = Env::State<T>;

inline const std::vector<std::string> kParamNames = param_names<Env>();

/// The caller's configuration: what Python passes to the operators.
struct Inputs {
  std::vector<double> params = std::vector<double>(kParamNames.size());
  std::vector<double> radius_noise = std::vector<double>(kNoiseTable + 1);

  /// Reads both from the standard input; false, and a line of error, if they are not all there.
  bool read() {
    for (double& number : params) std::cin >> number;
    for (double& number : radius_noise) std::cin >> number;
    if (std::cin) return true;
    std::fprintf(stderr, "expected %zu parameters and %d quantiles\n", params.size(),
                 kNoiseTable + 1);
    return false;
  }

  double& param(const std::string& name) {
    for (size_t i = 0; i < kParamNames.size(); ++i)
      if (name == kParamNames[i]) return params[i];
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
  std::vector<T> entry[Env::kEntries];
  explicit ObservationRows(const Shape& n) {
    for (int k = 0; k < Env::kEntries; ++k)
      entry[k].resize(size_t(n.worlds) * n.robots * n.frames * Env::entry_size(k));
  }
  ObservationView<Env, T> view() { return {entry[0].data(), entry[1].data(), entry[2].data()}; }
};

template <class T>
struct TestWorlds {
  Shape n;
  int stride;
  Env::Params<T> params;
  std::vector<T> robot, buoy, core, outcome, stats, stage, radius_noise, reward, continuous;
  std::vector<int32_t> status, bad, world;
  std::vector<int64_t> discrete;
  ObservationRows<T> even, odd;
  Flags acted, terminated, truncated, alive, done, world_terminated, world_truncated;
  std::map<std::string, std::vector<T>> more;  // of components of the water

  TestWorlds(const Inputs& inputs, const Shape& shape)
      : n(shape),
        stride((n.worlds + kRowAlignment - 1) / kRowAlignment * kRowAlignment),
        params(unpack_params<Env, T>(inputs.params.data())),
        robot(size_t(Robot::kCount) * n.robots * stride),
        buoy(size_t(3) * n.buoys * stride),
        core(size_t(3) * n.cores * stride),
        outcome(size_t(Env::Outcome::kCount) * stride),
        stage({T(n.robots), T(n.cores), T(n.buoys), T(20), T(0), T(0),  // no scenes
               T(n.robots - 1), T(0), T(n.buoys), T(30), T(0), T(0),
               T(2), T(n.cores), T(0), T(10), T(0), T(0)}),
        radius_noise(inputs.radius_noise.begin(), inputs.radius_noise.end()),
        reward(size_t(n.worlds) * n.robots),
        continuous(size_t(n.worlds) * n.robots * 2),
        status(size_t(n.robots) * stride),
        bad(size_t(n.robots) * stride),
        world(size_t(World::kCount) * stride),
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
    stats.resize(stage.size() / Env::Stage::kCount * Stat::kCount * stride);
    for (int w = 0; w < n.worlds; ++w)
      world[size_t(World::kNextStage) * stride + w] = w % static_cast<int>(stage.size() / Env::Stage::kCount);
  }

  Tables tables(uint32_t seed) {
    Tables t;
    t.set_size("worlds", n.worlds), t.set_size("stride", stride), t.set_size("robots", n.robots);
    t.set_size("buoys", n.buoys), t.set_size("vortices", n.cores);
    t.set_size("stages", stage.size() / Env::Stage::kCount);
    t.add("robot", robot.data()), t.add("status", status.data()), t.add("bad", bad.data());
    t.add("buoy", buoy.data()), t.add("vortex", core.data()), t.add("world", world.data());
    t.add("outcome", outcome.data()), t.add("stats", stats.data()), t.add("stage", stage.data());
    t.add("radius_noise", radius_noise.data());
    t.add("reward", reward.data()), t.add("acted", acted.data());
    t.add("terminated", terminated.data()), t.add("truncated", truncated.data());
    t.add("alive", alive.data()), t.add("done", done.data());
    t.add("world_terminated", world_terminated.data());
    t.add("world_truncated", world_truncated.data());
    for (const TensorSpec& spec : Env::state()) {
      if (t.at<void>(spec.name) != nullptr || spec.number != Number::kReal) continue;
      int64_t count = 1;
      for (const Extent& e : spec.shape) count *= e.name == nullptr ? e.size : t.size(e.name);
      more[spec.name].resize(count);
      t.add(spec.name, more[spec.name].data());
    }
    t.seed = seed | uint64_t{7} << 32;
    t.first_world = 100;
    return t;
  }
  State<T> state(uint32_t seed) { return State<T>(tables(seed)); }
  StepView<T> results() { return StepView<T>(tables(0)); }

  /// All bits of the worlds that exist: a padded world's lanes may hold anything.
  uint64_t digest() {
    Digest d;
    auto rows = [&](const auto& tensor) {
      for (size_t at = 0; at < tensor.size(); at += stride) d.add(tensor.data() + at, n.worlds);
    };
    rows(robot), rows(buoy), rows(core), rows(outcome), rows(stats), rows(status), rows(bad),
        rows(world);
    for (const auto& [name, tensor] : more) rows(tensor);
    auto whole = [&](const auto& tensor) { d.add(tensor.data(), tensor.size()); };
    for (ObservationRows<T>* o : {&even, &odd})
      for (const auto& entry : o->entry) whole(entry);
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
  TestWorlds<T> worlds(inputs, shape);
  const State<T> s = worlds.state(seed);
  const ActionView<T> action{discrete ? nullptr : worlds.continuous.data(),
                             discrete ? worlds.discrete.data() : nullptr};
  Rollout result;
  run_reset<Env, V>(launcher, s, worlds.params, nullptr, worlds.odd.view(), shape.frames,
               worlds.alive.data());
  result.digests.push_back(worlds.digest());
  for (int t = 0; t < steps; ++t) {
    for (size_t i = 0; i < worlds.discrete.size(); ++i) {
      const uint32_t at = static_cast<uint32_t>(i);
      worlds.discrete[i] = static_cast<int64_t>(hashed(t, at) * Env::kDiscrete);
      worlds.continuous[2 * i] = static_cast<T>(hashed(t, at) * 2.4 - 1.2);
      worlds.continuous[2 * i + 1] = static_cast<T>(hashed(t, at + 1000) * 2.4 - 1.2);
    }
    ObservationRows<T>& before = t % 2 == 0 ? worlds.odd : worlds.even;
    ObservationRows<T>& after = t % 2 == 0 ? worlds.even : worlds.odd;
    run_step<Env, V>(launcher, s, worlds.params, action, before.view(), after.view(), shape.frames,
                worlds.results());
    result.digests.push_back(worlds.digest());
    run_reset<Env, V>(launcher, s, worlds.params, worlds.done.data(), after.view(), shape.frames,
                 worlds.alive.data());
    result.digests.push_back(worlds.digest());
  }
  auto booked = [&](int field) {
    T sum = T(0);
    for (int stage = 0; stage < s.stages; ++stage)
      for (int w = 0; w < s.worlds; ++w) sum += *s.stat_at(stage, field, w);
    return static_cast<int64_t>(sum);
  };
  result.reached = booked(Stat::kReachedSum);
  result.collided = booked(Stat::kCollidedSum);
  result.timeouts = booked(Stat::kTimeouts);
  return result;
}

}  // namespace marinenav::test
