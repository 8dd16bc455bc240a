// What may go wrong with any sensor: misses, dropouts, delays, and factors on its noise and range.
#pragma once

#include <type_traits>

#include "kernel/params.h"
#include "marine/sensors/objects.h"

namespace marinenav {

/// Parameters of faults, in the list of every sensor that has them.
#define MN_SENSOR_FAULTS(X, XS) \
  X(miss) X(dropout) X(delay) XS(noise_factor, 2) XS(range_factor, 2)

/// Parameters with faults among them.
template <template <class> class Listed, class T>
struct FaultyParams : Listed<T> {
  MN_HD bool noise_varies() const { return varies(this->noise_factor); }
  MN_HD bool range_varies() const { return varies(this->range_factor); }
  template <class Range>
  MN_HD static bool varies(const Range& factor) {
    return !(factor[0] == T(1) && factor[1] == T(1));
  }
  /// Whether anything may go wrong with the sensor.
  MN_HD bool faulty() const {
    return this->miss > T(0) || this->dropout > T(0) || this->delay > T(0) || noise_varies() ||
           range_varies();
  }
};

/// What goes wrong with the sensor of robot r in a decision.
template <class V>
struct SensorFaults {
  Mask<V> blind, late;
  V noise_factor, range;

  template <class S, class P, class T = Scalar<V>>
  MN_HD SensorFaults(const S& s, const P& p, const RandomStream<V>& random, int r, int w) {
    const auto bits = random.draw(Purpose::kBlind, r, 0);
    blind = uniform<V>(bits.w0) < splat<V>(p.perception.dropout);
    late = uniform<V>(bits.w1) < splat<V>(p.perception.delay);
    noise_factor = load<V>(s.sensor + w);
    range = splat<V>(p.perception.range);
    if (p.perception.range_varies()) range = range * load<V>(s.reach + w);
  }

  /// Object `index` as a late sensor has it: where it was when the decision began.
  template <class S, class T = Scalar<V>>
  MN_HD TrueObject<V> delayed(const S& s, int r, int w, int index, const TrueObject<V>& o) const {
    const int other = index - s.buoys, j = other < r ? other : other + 1;
    if (index < s.buoys || j >= s.robots) return o;
    auto past = [&](int field, V now) {
      return select(late, load<V>(s.past_at(field, j, w)), now);
    };
    return {past(0, o.x), past(1, o.y), past(2, o.vx), past(3, o.vy), o.radius};
  }

  /// Where object `index` is not overlooked.
  template <class P, class T = Scalar<V>>
  MN_HD Mask<V> shows(const P& p, const RandomStream<V>& random, int r, int index) const {
    const auto bits = random.draw(Purpose::kMiss, r, index);
    return negate(either(blind, uniform<V>(bits.w0) < splat<V>(p.perception.miss)));
  }
};

/// A sensor that shows objects as they are.
template <class V>
struct NoFaults {
  template <class S, class P>
  MN_HD NoFaults(const S&, const P&, const RandomStream<V>&, int, int) {}
  template <class S>
  MN_HD const TrueObject<V>& delayed(const S&, int, int, int, const TrueObject<V>& o) const {
    return o;
  }
};
template <bool kFaulty, class V>
using FaultsIf = std::conditional_t<kFaulty, SensorFaults<V>, NoFaults<V>>;

/// A sensor with faults, if the parameters say so, and what it keeps for them.
struct FaultySensor {
  static constexpr bool kFaulty = true;

  static TensorSpecs state() {
    // of the episode; vessels when the decision began: m, m, m/s, m/s
    return {{"sensor", Number::kReal, {1, "stride"}, "noise_factor"},
            {"reach", Number::kReal, {1, "stride"}, "range_factor"},
            {"past", Number::kReal, {4, "robots", "stride"}, "x y vx vy"}};
  }

  template <class T>
  struct View {
    T *sensor, *reach, *past;
    int past_robots, past_stride;
    explicit View(const Tables& t)
        : sensor(t.at<T>("sensor")), reach(t.at<T>("reach")), past(t.at<T>("past")),
          past_robots(t.size("robots")), past_stride(t.size("stride")) {}
    MN_HD T* past_at(int field, int r, int w) const {
      return past + (int64_t{field} * past_robots + r) * past_stride + w;
    }
  };

  /// Keeps where vessels are, for a late sensor.
  template <class V, class S>
  MN_HD static void keep(const S& s, int w) {
    using F = typename S::Robot;
    const int fields[] = {F::kX, F::kY, F::kVx, F::kVy};
    for (int r = 0; r < s.robots; ++r)
      for (int i = 0; i < 4; ++i)
        store(s.past_at(i, r, w), load<V>(s.robot_at(fields[i], r, w)));
  }
  template <class V, class S, class P>
  MN_HD static void advance(const S& s, const P& p, int w, Mask<V>) {
    if (p.perception.delay > 0) keep<V>(s, w);
  }
  template <class Placement>
  MN_HD static void place(const Placement& place) {
    const auto& noise = place.p.perception.noise_factor;
    const auto& range = place.p.perception.range_factor;
    const Philox4<uint32_t> bits = place.random.draw(Purpose::kSensorFactors, 0, 0);
    place.s.sensor[place.w] = between(noise[0], noise[1], bits.w0);
    place.s.reach[place.w] = between(range[0], range[1], bits.w1);
    if (place.p.perception.delay > 0) keep<typename Placement::Real>(place.s, place.w);
  }
};

}  // namespace marinenav
