// Tests of the simulator's core without torch, for the address and undefined-behaviour sanitizers.
// Input: the parameters and the radius noise table as text. Prints what was checked; exit status 1
// if a check failed.
#include <cstdio>
#include <random>

#include "functions.h"
#include "launchers.h"
#include "worlds.h"

namespace marinenav::test {
namespace {

// ---- order -------------------------------------------------------------------------------------

/// Compares two rollouts and names the first operation after which they differ.
void report_same(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b,
                 const std::string& what) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const std::string where = i == 0 ? "the first reset"
                                     : (i % 2 == 1 ? "step " : "the resets after step ") +
                                           std::to_string((i - 1) / 2);
    report(false, what + ": differ from " + where);
    return;
  }
  report(true, what + ": all bits of " + std::to_string(a.size()) + " operations agree");
}

struct Case {
  const char* name;
  Shape shape;
  bool discrete;
};

constexpr int kSteps = 40;
const Case kCases[] = {
    {"38 worlds, 5 robots, 4 buoys, 4 cores", {38, 5, 4, 4, 1}, false},
    {"33 worlds, 4 robots, 2 buoys, discrete, 3 frames", {33, 4, 2, 0, 3}, true},
    {"3 worlds, 5 robots, 3 cores", {3, 5, 0, 3, 1}, false},
};

template <class V>
Rollout test_order(const Inputs& inputs, const Case& c, const std::string& type) {
  const std::string name = std::string(c.name) + ", " + type;
  const auto in_order = rollout<V>(inputs, c.shape, c.discrete, kSteps, InOrder{});
  const auto shuffled = rollout<V>(inputs, c.shape, c.discrete, kSteps, Shuffled{});
  const auto threads = rollout<V>(inputs, c.shape, c.discrete, kSteps, OverThreads{});
  report_same(in_order.digests, shuffled.digests, name + ", shuffled");
  report_same(in_order.digests, threads.digests, name + ", over threads");
  const auto other = rollout<V>(inputs, c.shape, c.discrete, 1, InOrder{}, 4);
  report(other.digests[0] != in_order.digests[0], name + ": another seed gives other bits");
  report(c.shape.worlds < kRowAlignment ||
             (in_order.reached > 0 && in_order.collided > 0 && in_order.timeouts > 0),
         name + ": " + std::to_string(in_order.reached) + " goals, " +
             std::to_string(in_order.collided) + " collisions, " +
             std::to_string(in_order.timeouts) + " time-outs");
  return in_order;
}

/// What the order tests must catch: an index that reads what another index of its phase writes.
struct RacingPhase {
  using Value = float;
  static constexpr bool kPerRobot = true;
  State<float> s;
  void operator()(int r, int w) const {
    *s.robot_at(Robot::kX, r, w) += *s.robot_at(Robot::kX, (r + 1) % s.robots, w);
  }
};

void test_shuffling_reveals_a_race(const Inputs& inputs) {
  uint64_t digests[2];
  for (int shuffle = 0; shuffle < 2; ++shuffle) {
    TestWorlds<float> worlds(inputs, kCases[0].shape);
    for (size_t i = 0; i < worlds.robot.size(); ++i) worlds.robot[i] = static_cast<float>(i);
    const RacingPhase phase{worlds.state(3)};
    if (shuffle != 0) {
      Shuffled{}(worlds.n.worlds, worlds.n.robots, phase);
    } else {
      InOrder{}(worlds.n.worlds, worlds.n.robots, phase);
    }
    digests[shuffle] = worlds.digest();
  }
  report(digests[0] != digests[1], "shuffling reveals a phase whose indices race");
}

// ---- bad actions -------------------------------------------------------------------------------

/// Unusable actions are counted, read nothing out of bounds and change no thrust.
template <class V, class T = Scalar<V>>
void test_bad_actions(const Inputs& inputs, const std::string& type) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T continuous[] = {nan, inf, -inf, -nan};
  const int64_t discrete[] = {-1, Env::kDiscrete, std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min()};
  bool counted = true, unchanged = true;
  for (int kind = 0; kind < 2; ++kind) {
    TestWorlds<T> worlds(inputs, kCases[0].shape);
    const State<T> s = worlds.state(3);
    run_reset<Env, V>(InOrder{}, s, worlds.params, nullptr, worlds.odd.view(), 1, worlds.alive.data());
    for (size_t i = 0; i < worlds.discrete.size(); ++i) {
      worlds.continuous[2 * i + i % 2] = continuous[i % 4];
      worlds.discrete[i] = discrete[i % 4];
    }
    const ActionView<T> action{kind == 0 ? worlds.continuous.data() : nullptr,
                               kind == 0 ? nullptr : worlds.discrete.data()};
    run_step<Env, V>(InOrder{}, s, worlds.params, action, worlds.odd.view(), worlds.even.view(), 1,
                worlds.results());
    for (int r = 0; r < s.robots; ++r) {
      for (int w = 0; w < s.worlds; ++w) {
        const bool acted = worlds.acted.data()[w * s.robots + r];
        counted = counted && *s.bad_at(r, w) == (acted ? 1 : 0);
        unchanged = unchanged && *s.robot_at(Robot::kLeftThrust, r, w) == T(0) &&
                    *s.robot_at(Robot::kRightThrust, r, w) == T(0);
      }
    }
  }
  report(counted, "bad actions are counted, " + type);
  report(unchanged, "bad actions change no thrust, " + type);
}

// ---- random states -----------------------------------------------------------------------------

/// Any number that a state from elsewhere may hold, now and then an ordinary one.
template <class T>
T any_number(std::mt19937& random) {
  using Limits = std::numeric_limits<T>;
  const T odd[] = {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max(),
                   Limits::lowest(),    Limits::denorm_min(), T(0),                T(-0.0)};
  const uint32_t drawn = random();
  return drawn % 4 == 0 ? odd[drawn / 4 % 8] : static_cast<T>(static_cast<int32_t>(drawn) * 1e-8);
}

/// Any whole number; half of them small, since those pass for counts and indices.
int32_t any_count(std::mt19937& random) {
  const uint32_t drawn = random();
  return drawn % 2 == 0 ? static_cast<int32_t>(drawn % 16) - 4 : static_cast<int32_t>(random());
}

/// Whatever a state holds, no operation reads or writes out of bounds; the sanitizer watches.
template <class V, class T = Scalar<V>>
void test_random_states(const Inputs& inputs, const std::string& type) {
  std::mt19937 random(5);
  constexpr int32_t kMost = 1 << 30;  // of what is counted up
  for (int round = 0; round < 24; ++round) {
    const Case& c = kCases[round % 3];
    TestWorlds<T> worlds(inputs, c.shape);
    const State<T> s = worlds.state(3);
    run_reset<Env, V>(InOrder{}, s, worlds.params, nullptr, worlds.odd.view(), c.shape.frames,
                      worlds.alive.data());
    auto fill = [&](std::vector<T>& tensor) {
      for (T& x : tensor) x = any_number<T>(random);
    };
    if (round % 2 == 0) fill(worlds.robot), fill(worlds.buoy), fill(worlds.core);
    fill(worlds.outcome), fill(worlds.stats);
    for (auto& [name, tensor] : worlds.more) fill(tensor);
    for (int32_t& x : worlds.status) x = any_count(random);
    for (int32_t& x : worlds.bad) x = any_count(random) % kMost;
    for (int field = 0; field < World::kCount; ++field) {
      const bool counted =
          field == World::kEpisode || field == World::kStep || field == World::kRobotSteps;
      for (int w = 0; w < worlds.stride; ++w) {
        const int32_t drawn = any_count(random);
        *s.world_at(field, w) = counted ? drawn % kMost : drawn;
      }
    }
    for (size_t i = 0; i < worlds.discrete.size(); ++i) {
      worlds.discrete[i] = any_count(random);
      worlds.continuous[2 * i] = any_number<T>(random);
    }
    const ActionView<T> action{c.discrete ? nullptr : worlds.continuous.data(),
                               c.discrete ? worlds.discrete.data() : nullptr};
    for (int step = 0; step < 3; ++step) {
      for (int w = 0; w < worlds.stride; ++w)
        if (w % 2 == step % 2) *s.world_at(World::kEnd, w) = kRunning;
      run_step<Env, V>(InOrder{}, s, worlds.params, action, worlds.odd.view(), worlds.even.view(),
                       c.shape.frames, worlds.results());
    }
    run_reset<Env, V>(InOrder{}, s, worlds.params, worlds.done.data(), worlds.even.view(),
                      c.shape.frames, worlds.alive.data());
    run_observe<Env, V>(InOrder{}, s, worlds.params, nullptr, worlds.even.view(), c.shape.frames);
  }
  report(true, "random states stay in bounds, " + type);
}

}  // namespace
}  // namespace marinenav::test

int main() {
  using namespace marinenav;
  using namespace marinenav::test;
  Inputs inputs;
  if (!inputs.read()) return 2;
  // Short episodes in a narrow space, so that every kind of end happens.
  inputs.param("episode.max_steps") = 15;
  inputs.param("reward.goal_distance") = 9;
  inputs.param("scenario.clear_radius") = 6;

  test_functions();
  test_shuffling_reveals_a_race(inputs);
  for (const Case& c : kCases) {
    const auto scalar = test_order<float>(inputs, c, "float32 scalar");
    const auto lanes = test_order<PackF>(inputs, c, "float32 lanes");
    report_same(scalar.digests, lanes.digests, std::string(c.name) + ", lanes against scalar");
    const auto reference = test_order<double>(inputs, c, "float64");
    std::printf("digest %s: %016llx %016llx\n", c.name,
                static_cast<unsigned long long>(lanes.digests.back()),
                static_cast<unsigned long long>(reference.digests.back()));
  }
  test_bad_actions<float>(inputs, "float32 scalar");
  test_bad_actions<PackF>(inputs, "float32 lanes");
  test_bad_actions<double>(inputs, "float64");
  test_random_states<float>(inputs, "float32 scalar");
  test_random_states<PackF>(inputs, "float32 lanes");
  test_random_states<double>(inputs, "float64");
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
