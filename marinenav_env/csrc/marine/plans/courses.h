// Plans that follow a course: an offset from the goal's bearing and a factor of the speed, held by a
// velocity controller, and what simulation-based model predictive control makes of them (Johansen et
// al. 2016; Hagen et al. 2018). The controller and the final action are train_RL_agents/evaluation/
// baselines/vessel.py and sbmpc.py, where units and sources stand.
#pragma once

#include "kernel/params.h"
#include "marine/plans/ahead.h"

namespace marinenav {

#define MN_COURSE_PARAMS(X, XS)                                                                  \
  X(horizon_s) X(speed) X(least_speed)                                                           \
  X(lead) X(course) X(yaw_s) X(surge_s) X(most_yaw_rate) X(least_surge)                          \
  X(safe_m) X(close_m) X(nearness_power) X(contact_m) X(contact_cost) X(rule_cost)               \
  X(rule_margin_m) X(ahead_deg) X(overtaking_deg) X(head_on_deg) X(abeam_deg)
MN_PARAMS(ListedCourseParams, MN_COURSE_PARAMS)
#undef MN_COURSE_PARAMS

template <class T>
struct CourseParams : ListedCourseParams<T> {
  T cos_ahead, cos_overtaking, cos_head_on, cos_abeam;

  void derive(const CourseParams<double>& q) {
    const auto cos_of = [](double degrees) {
      return static_cast<T>(std::cos(degrees * kPi<double> / 180.0));
    };
    cos_ahead = cos_of(q.ahead_deg), cos_overtaking = cos_of(q.overtaking_deg);
    cos_head_on = cos_of(q.head_on_deg), cos_abeam = cos_of(q.abeam_deg);
  }
};

/// One index some courses and a vessel: lanes overlap their chains of dependent operations.
template <class Env, class V>
struct PlanCoursesPhase {
  using Value = V;
  using T = Scalar<V>;
  static constexpr bool kPerRobot = true;
  static constexpr int kCourses = kLaneCount<V> == 1 ? 1 : 4;
  typename Env::template Params<T> p;
  CourseParams<T> q;
  SightView<T> sight;
  const T* courses;       // [C, 2]: offset [rad], factor of the speed
  T *danger, *remaining;  // [C, N]
  int count, decisions;   // C

  static int groups(int count) { return (count + kCourses - 1) / kCourses; }

  MN_HD void operator()(int group, int n) const {
    const Surroundings<V> around(p, sight, n);
    const int substeps = static_cast<int>(p.vessel.substeps);
    const V goal = splat<V>(p.reward.goal_distance);
    int course[kCourses];
    Ahead<V> vessel[kCourses];
    V left[kCourses], worst[kCourses];
    for (int j = 0; j < kCourses; ++j) {
      const int c = group * kCourses + j;
      course[j] = c < count ? c : count - 1;
      vessel[j].begin(sight, n);
      left[j] = distance_left(around, vessel[j], p.reward.goal_distance,
                              splat<V>(std::numeric_limits<T>::max()));
      worst[j] = splat<V>(T(0));
    }
    for (int d = 1; d <= decisions; ++d) {
      for (int j = 0; j < kCourses; ++j) {
        V rates[2];
        steer(around, vessel[j], courses + 2 * course[j], rates);
        vessel[j].begin_decision(p.vessel, rates);
      }
      for (int i = 1; i <= substeps; ++i) {
        MN_UNROLL
        for (int j = 0; j < kCourses; ++j) vessel[j].substep(p.vessel, i);
      }
      for (int j = 0; j < kCourses; ++j) {
        const V cost = danger_at(around, vessel[j], static_cast<T>(d) * p.vessel.decision_time);
        worst[j] = select(left[j] <= goal, worst[j], larger(worst[j], cost));
        left[j] = distance_left(around, vessel[j], p.reward.goal_distance, left[j]);
      }
    }
    for (int j = 0; j < kCourses; ++j) {
      const auto put = [&](T* values, V value) {
        T* row = values + int64_t{course[j]} * sight.count;
        write_lanes(n, sight.count, value, [&](int i, T x) { row[i] = x; });
      };
      put(danger, worst[j]), put(remaining, left[j]);
    }
  }

  /// Thrust rates that follow a course: feedback on yaw rate and surge, the model's forces fed
  /// forward.
  MN_HD void steer(const Surroundings<V>& around, const Ahead<V>& vessel, const T* course_row,
                   V (&rates)[2]) const {
    const SinCos<T> turn = sincos_of(course_row[0]);
    const T factor = course_row[1];
    const auto& v = p.vessel;
    const auto& m = vessel.motion;
    const V zero = splat<V>(T(0));
    const SinCos<V> h = sincos_of(m.heading);
    const Vec2<V> goal = in_body(h, around.goal_x - m.x, around.goal_y - m.y);
    const Vec2<V> own = in_body(h, m.vx, m.vy);
    const V far = larger(square_root(goal.x * goal.x + goal.y * goal.y), splat<V>(T(1e-6)));
    const V least = splat<V>(q.least_speed), most = splat<V>(q.speed);
    const V scale = smaller(larger(far, least), most) * factor / far;
    const V ahead = (goal.x * turn.cos - goal.y * turn.sin) * scale;
    const V aside = (goal.x * turn.sin + goal.y * turn.cos) * scale;

    const V aim_x = ahead + (ahead - own.x) * q.lead, aim_y = aside + (aside - own.y) * q.lead;
    const auto slow = aim_x * aim_x + aim_y * aim_y < splat<V>(T(0.05) * T(0.05));
    const V course = select(slow, zero, atan2_of(aim_y, aim_x));
    const V most_rate = splat<V>(q.most_yaw_rate);
    const V rate = smaller(larger(course * q.course, -most_rate), most_rate);
    const V surge = larger(ahead, splat<V>(q.least_surge));
    const T mass_x = v.mass - v.x_dot_u, inertia = v.izz - v.n_dot_r;
    const V yaw = -(v.n_r + absolute(rate) * v.n_rr) * rate + (rate - m.yaw) * (inertia / q.yaw_s) +
                  own.x * own.y * v.x_dot_u;
    V forward = -(v.x_u + absolute(own.x) * v.x_uu) * own.x +
                (surge - own.x) * (mass_x / q.surge_s) - m.yaw * own.y * v.mass;
    const V span = splat<V>(v.max_thrust - v.min_thrust);
    const V apart = smaller(larger(yaw * (T(2) / v.width), -span), span);
    forward = larger(forward, absolute(apart) + T(2) * v.min_thrust);
    forward = smaller(forward, T(2) * v.max_thrust - absolute(apart));
    const V one = splat<V>(T(1));
    const T change = v.max_thrust_rate * v.decision_time;
    const auto rate_to = [&](V thrust, V now) {
      return smaller(larger((thrust - now) / change, -one), one) * v.max_thrust_rate;
    };
    rates[0] = rate_to((forward + apart) * T(0.5), vessel.left);
    rates[1] = rate_to((forward - apart) * T(0.5), vessel.right);
  }

  /// Cost of a moment: nearness, contact and broken rules, of the worst object.
  MN_HD V danger_at(const Surroundings<V>& around, const Ahead<V>& vessel, T time) const {
    const auto& m = vessel.motion;
    const V zero = splat<V>(T(0)), one = splat<V>(T(1));
    const SinCos<V> h = sincos_of(m.heading);
    const V speed = square_root(m.vx * m.vx + m.vy * m.vy);
    V worst = zero;
    for (int k = 0; k < kObjects; ++k) {
      const Object<V>& o = around.object[k];
      const V dx = o.px + o.vx * time - m.x, dy = o.py + o.vy * time - m.y;
      const V far = larger(square_root(dx * dx + dy * dy), splat<V>(T(1e-6)));
      const V contact = around.radius[k] + p.vessel.radius, safe = contact + q.safe_m;
      const V rx = m.vx - o.vx, ry = m.vy - o.vy;
      const V ratio = safe / far;
      V nearness = one;
      for (int i = 0; i < static_cast<int>(q.nearness_power); ++i) nearness = nearness * ratio;
      V cost = larger(rx * rx + ry * ry, one) * nearness * (T(0.5) / time);
      cost = select(far < safe, cost, zero);
      cost = cost + select(far < contact + q.contact_m, splat<V>(q.contact_cost / time), zero);
      const auto near = far < smaller(safe + q.rule_margin_m, splat<V>(q.close_m));
      const auto breaks = both(near, breaks_a_rule(o, h, dx / far, dy / far, m.vx, m.vy, speed));
      cost = cost + select(breaks, splat<V>(q.rule_cost), zero);
      worst = select(around.present[k], larger(worst, cost), worst);
    }
    return worst;
  }

  /// Whether a head-on vessel, or one that crosses, lies to starboard. (ux, uy): line of sight.
  MN_HD Mask<V> breaks_a_rule(const Object<V>& o, const SinCos<V>& h, V ux, V uy, V vx, V vy,
                              V speed) const {
    const Vec2<V> sight_line = in_body(h, ux, uy);
    const V zero = splat<V>(T(0));
    const auto starboard = both(sight_line.y > zero, sight_line.x > splat<V>(q.cos_abeam));
    const V other = square_root(o.vx * o.vx + o.vy * o.vy);
    const V along = vx * o.vx + vy * o.vy, product = speed * other;
    const auto overtaking = both(along > product * q.cos_overtaking, speed > other);
    const auto head_on = both(both(other > splat<V>(T(0.05)), along < product * -q.cos_head_on),
                              vx * ux + vy * uy > speed * q.cos_ahead);
    const auto crossing = both(along < product * q.cos_overtaking, negate(overtaking));
    return both(starboard, either(head_on, crossing));
  }
};

}  // namespace marinenav
