// Rewards, ends and statistics of a decision, world by world.
#pragma once

#include "philox.h"
#include "params.h"
#include "state.h"

namespace marinenav {

/// Results of a step.
template <class T>
struct StepView {
  T* reward;                  // [W, R]
  bool *acted, *terminated, *truncated, *alive;  // [W, R]
  bool *done, *world_terminated, *world_truncated;  // [W]
};

/// Calls body(i) for the lanes of `left` worlds at most; a full group without a test for each.
template <class V, class Body>
MN_HD void for_lanes(int left, const Body& body) {
  if (left >= kLaneCount<V>) {
    MN_UNROLL
    for (int i = 0; i < kLaneCount<V>; ++i) body(i);
  } else {
    for (int i = 0; i < left; ++i) body(i);
  }
}

template <class V>
struct JudgePhase {
  using Value = V;
  using T = Scalar<V>;
  static constexpr bool kPerRobot = false;
  State<T> s;
  Params<T> p;
  StepView<T> out;

  /// Rewards robot r and ends it on contact or goal; returns where it ended by contact.
  MN_HD Mask<V> judge_robot(int r, int w) const {
    const V zero = splat<V>(T(0)), one = splat<V>(T(1));
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    auto status = load_int<V>(s.status_at(r, w));
    const auto alive = is_set(status, kAlive);
    const V dx = field(kGoalX) - field(kX), dy = field(kGoalY) - field(kY);
    const auto contact = both(alive, field(kContact) > zero);
    const auto reached = both(
        alive, square_root(dx * dx + dy * dy) <= splat<V>(p.reward.goal_distance));
    const V end_reward = select(contact, splat<V>(p.reward.collision),
                                select(reached, splat<V>(p.reward.goal), zero));
    const V reward = select(
        alive, field(kProgress) + p.reward.timestep + field(kPhi) * p.reward.colregs + end_reward,
        zero);
    const auto ended = either(contact, reached);
    status = select(contact, status | kCollided, status);
    status = select(reached, status | kReached, status);
    status = select(ended, status & ~kAlive, status);
    store_int<V>(s.status_at(r, w), status);
    auto add = [&](int f, V value) {
      store(s.robot_at(f, r, w), field(f) + select(alive, value, zero));
    };
    add(kReturn, reward), add(kEnergy, field(kStepEnergy)), add(kSteps, one);
    const Int<V> none{};
    const auto flags = select(alive, none + 1, none) | select(ended, none + 2, none);
    for_lanes<V>(s.worlds - w, [&](int i) {
      const int64_t row = int64_t{w + i} * s.robots + r;
      const int32_t f = lane<V>(flags, i);
      out.reward[row] = lane<V>(reward, i);
      out.acted[row] = (f & 1) != 0;
      out.terminated[row] = (f & 2) != 0;
    });
    return contact;
  }

  MN_HD void operator()(int, int w) const {
    auto end = load_int<V>(s.world_at(kEnd, w));
    const auto running = end == kRunning;
    auto collided = negate(either(running, negate(running)));  // nowhere yet
    auto acting = load_int<V>(s.world_at(kRobotStepsTaken, w));
    auto alive = collided;
    for (int r = 0; r < s.robots; ++r) {
      const auto before = load_int<V>(s.status_at(r, w)) & kAlive;
      acting = acting + before;  // kAlive is 1
      collided = either(collided, judge_robot(r, w));
      alive = either(alive, is_set(load_int<V>(s.status_at(r, w)), kAlive));
    }
    store_int<V>(s.world_at(kRobotStepsTaken, w), acting);
    auto step = load_int<V>(s.world_at(kStep, w));
    step = select(running, step + 1, step);
    store_int<V>(s.world_at(kStep, w), step);
    const bool stop = p.episode.stop_on_collision > T(0);
    auto terminated = negate(alive);
    if (stop) terminated = either(terminated, collided);
    terminated = both(running, terminated);
    const auto late = step >= Int<V>{} + static_cast<int32_t>(p.episode.max_steps);
    const auto truncated = both(both(running, negate(terminated)), late);
    end = select(terminated, Int<V>{} + static_cast<int32_t>(kTerminated), end);
    end = select(truncated, Int<V>{} + static_cast<int32_t>(kTruncated), end);
    store_int<V>(s.world_at(kEnd, w), end);
    finish(w, either(terminated, truncated), end);
  }

  /// Who is under way when a world ends, by a limit or by another robot's collision, is truncated.
  /// Writes the worlds' ends, empties finished worlds and books their episodes.
  MN_HD void finish(int w, Mask<V> finished, Int<V> end) const {
    for (int r = 0; r < s.robots; ++r) {
      const auto status = load_int<V>(s.status_at(r, w));
      const auto alive = is_set(status, kAlive);
      store_int<V>(s.status_at(r, w), select(finished, status & ~kAlive, status));
      const Int<V> none{};
      const auto flags = select(both(alive, finished), none + 1, none) |
                         select(both(alive, negate(finished)), none + 2, none);
      for_lanes<V>(s.worlds - w, [&](int i) {
        const int64_t row = int64_t{w + i} * s.robots + r;
        const int32_t f = lane<V>(flags, i);
        out.truncated[row] = (f & 1) != 0;
        out.alive[row] = (f & 2) != 0;
      });
    }
    for (int i = 0; i < kLaneCount<V> && w + i < s.worlds; ++i) {
      const int32_t e = lane<V>(end, i);
      out.done[w + i] = e != kRunning;
      out.world_terminated[w + i] = e == kTerminated;
      out.world_truncated[w + i] = e == kTruncated;
      if (lane<V>(finished, i) != 0) book(w + i, e == kTruncated);
    }
  }

  /// Outcome of the finished episode of world w, and its share of the statistics.
  MN_HD void book(int w, bool truncated) const {
    const int placed = *s.world_at(kRobots, w);
    const T n = static_cast<T>(placed > 0 ? placed : 1);
    T reached = T(0), hit = T(0), time = T(0), energy = T(0), episode_return = T(0);
    for (int r = 0; r < placed; ++r) {
      const int32_t status = *s.status_at(r, w);
      hit += is_set(status, kCollided) ? T(1) : T(0);
      reached += is_set(status, kReached) && !is_set(status, kCollided) ? T(1) : T(0);
      time += *s.robot_at(kSteps, r, w) * p.decision_time;
      energy += *s.robot_at(kEnergy, r, w);
      episode_return += *s.robot_at(kReturn, r, w);
    }
    const bool success = placed > 0 && reached == static_cast<T>(placed);
    const bool collision = hit > T(0);
    const bool timeout = truncated && !collision;
    const T length = static_cast<T>(*s.world_at(kStep, w));
    *s.outcome_at(kSuccess, w) = success ? T(1) : T(0);
    *s.outcome_at(kCollision, w) = collision ? T(1) : T(0);
    *s.outcome_at(kTimeout, w) = timeout ? T(1) : T(0);
    *s.outcome_at(kMeanTime, w) = time / n;
    *s.outcome_at(kMeanEnergy, w) = energy / n;
    *s.outcome_at(kMeanReturn, w) = episode_return / n;
    *s.outcome_at(kLength, w) = length;
    if (s.stats == nullptr) return;
    const int stage = *s.world_at(kStage, w);
    auto add = [&](int field, T value) { *s.stat_at(stage, field, w) += value; };
    add(kEpisodes, T(1)), add(kSuccesses, success ? T(1) : T(0));
    add(kCollisions, collision ? T(1) : T(0)), add(kTimeouts, timeout ? T(1) : T(0));
    add(kReturnSum, episode_return / n), add(kLengthSum, length);
    add(kSuccessTimeSum, success ? time / n : T(0));
    add(kSuccessEnergySum, success ? energy / n : T(0));
    add(kRobotSum, static_cast<T>(placed)), add(kReachedSum, reached), add(kCollidedSum, hit);
  }
};

}  // namespace marinenav
