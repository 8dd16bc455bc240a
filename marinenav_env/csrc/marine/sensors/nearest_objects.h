// What a robot sees: detection with noise, the nearest objects, contact and COLREGs.
#pragma once

#include "marine/colregs.h"
#include "marine/sensors/faults.h"
#include "marine/sensors/object_list.h"

namespace marinenav {

constexpr int kNoiseTable = 1024;
constexpr int kObjectFeatures = 5;

#define MN_PERCEPTION_PARAMS(X, XS) \
  X(range) X(angle) X(position_std) X(velocity_std) X(radius_mean_ratio) MN_SENSOR_FAULTS(X, XS)
MN_PARAMS(ListedPerceptionParams, MN_PERCEPTION_PARAMS)
#undef MN_PERCEPTION_PARAMS

template <class T>
struct PerceptionParams : FaultyParams<ListedPerceptionParams, T> {
  T cos_half_angle;  // of the field of view

  // An object at distance d is in view if x >= d * cos(angle / 2): all of them for a full circle.
  void derive(const PerceptionParams<double>& p) {
    cos_half_angle = static_cast<T>(std::cos(0.5 * p.angle));
  }
};

/// Sensor noise: N(0, std) on position and velocity in the world frame; radius times
/// mean_ratio + (1 - mean_ratio) * vonMises(0, kappa) / pi.
template <class V, class S, class P, class Factor, class T = Scalar<V>>
MN_HD TrueObject<V> add_noise(const P& p, const S& s, const Philox4<UInt<V>>& bits,
                              const TrueObject<V>& o, const Factor& factor) {
  const auto position_std = p.perception.position_std * factor;
  const auto velocity_std = p.perception.velocity_std * factor;
  const NormalPair<V> position = normal_pair<V>(bits.w0, bits.w1);
  const NormalPair<V> velocity = normal_pair<V>(bits.w2, bits.w3);
  // The uniforms above use the top 24 bits of each word; the low bytes make a fifth number.
  const auto spare = ((bits.w0 & 0xffu) << 24) | ((bits.w1 & 0xffu) << 16) | ((bits.w2 & 0xffu) << 8);
  const V at = uniform<V>(spare) * T(kNoiseTable);
  const auto index = to_int(at);
  const V fraction = at - to_real(index, V{});
  const V low = gather(s.radius_noise, index);
  const V high = gather(s.radius_noise + 1, index);
  const V radius_factor = (low + (high - low) * fraction) * (T(1) - p.perception.radius_mean_ratio) +
                          p.perception.radius_mean_ratio;
  return {o.x + position.first * position_std, o.y + position.second * position_std,
          o.vx + velocity.first * velocity_std, o.vy + velocity.second * velocity_std,
          o.radius * radius_factor};
}

/// Sees one object: into the list where `shows(detected, distance)`, and true where it is detected
/// and touched.
template <class V, class P, class Shows, class T = Scalar<V>>
MN_HD Mask<V> sense(const P& p, const Observer<V>& self, Mask<V> present,
                    const TrueObject<V>& truth, const TrueObject<V>& seen, ObjectList<V>& list,
                    const Shows& shows) {
  const Object<V> o = in_body_frame(self, seen);
  const V distance = square_root(o.px * o.px + o.py * o.py);
  const auto detected = both(present, both(distance <= seen.radius + p.perception.range,
                                           o.px >= distance * p.perception.cos_half_angle));
  insert(list, select(shows(detected, distance), distance - seen.radius, splat<V>(kUnseen<T>)), o);
  const V true_dx = truth.x - self.x;
  const V true_dy = truth.y - self.y;
  const V reach = truth.radius + self.hull;
  return both(detected, true_dx * true_dx + true_dy * true_dy <= reach * reach);
}

template <class T>
MN_HD bool is_noisy(const PerceptionParams<T>& p) {
  return p.position_std > T(0) || p.velocity_std > T(0) || p.radius_mean_ratio < T(1);
}

/// Objects looked at together, so that lanes overlap their chains of dependent operations.
template <class V>
constexpr int kTogether = kLaneCount<V> == 1 ? 1 : 2;

/// Looks around: fills `list` and returns where the robot touches a detected object.
template <bool kFaulty, class V, class S, class P, class T = Scalar<V>>
MN_HD Mask<V> look_around(const S& s, const P& p, const RandomStream<V>& random,
                          const Observer<V>& self, int r, int w, ObjectList<V>& list) {
  constexpr int N = kTogether<V>;
  const V zero = splat<V>(T(0));
  const bool noisy = is_noisy(p.perception);
  list.clear();
  auto contact = zero > zero;
  const FaultsIf<kFaulty, V> faults(s, p, random, r, w);
  // Buoys first: on equal distance they are listed before robots.
  for (int first = 0; first < s.buoys + s.robots - 1; first += N) {
    Candidate<V> object[N];
    Philox4<UInt<V>> bits[N];
    bool some = false;
    MN_UNROLL
    for (int n = 0; n < N; ++n) {
      object[n] = candidate(s, p, random, r, w, first + n);
      bits[n] = object[n].counter;
      some = some || any(object[n].present);
    }
    if (!some) continue;
    if (noisy) philox(bits, random.key0, random.key1);
    MN_UNROLL
    for (int n = 0; n < N; ++n) {
      const TrueObject<V>& truth = object[n].truth;
      const auto& present = object[n].present;
      if constexpr (kFaulty) {
        const TrueObject<V> known = faults.delayed(s, r, w, first + n, truth);
        const TrueObject<V> seen =
            noisy ? add_noise(p, s, bits[n], known, faults.noise_factor) : known;
        const auto shown = faults.shows(p, random, r, first + n);
        const auto shows = [&](Mask<V> detected, V distance) {
          return both(both(detected, shown), distance <= seen.radius + faults.range);
        };
        contact = either(contact, sense(p, self, present, truth, seen, list, shows));
      } else {
        const TrueObject<V> seen = noisy ? add_noise(p, s, bits[n], truth, T(1)) : truth;
        const auto shows = [](Mask<V> detected, V) { return detected; };
        contact = either(contact, sense(p, self, present, truth, seen, list, shows));
      }
    }
  }
  return contact;
}

/// phi (rad) of the nearest object that COLREGs ask to give way to, else 0.
template <class V, class P, class T = Scalar<V>>
MN_HD V colregs_angle(const P& p, const ObjectList<V>& list, V u, V v) {
  const V zero = splat<V>(T(0));
  V real = splat<V>(T(1)), imaginary = zero;
  auto found = zero > zero;
  MN_UNROLL
  for (int k = 0; k < kObjects; ++k) {
    const TurnAngle<V> z = turn_angle(p, list.object[k], u, v);
    const auto take = both(both(z.applies, negate(found)), list.holds(k));
    real = select(take, z.real, real);
    imaginary = select(take, z.imaginary, imaginary);
    found = either(found, take);
  }
  if (!any(found)) return zero;
  return select(found, atan2_of(imaginary, real), zero);
}

/// The nearest kObjects by surface distance, their number fixed and a mask beside them.
struct NearestObjects : FaultySensor {
  static constexpr int kEntries = 2;
  static constexpr int kSize = kObjects * (kObjectFeatures + 1);
  MN_HD static constexpr int entry_size(int k) {
    return k == 0 ? kObjects * kObjectFeatures : kObjects;
  }
  static TensorSpecs observation() {
    return {{"objects", Number::kReal, {"worlds", "robots", "frames", kObjects, kObjectFeatures},
             "p_x p_y v_x v_y radius"},
            {"mask", Number::kReal, {"worlds", "robots", "frames", kObjects}}};
  }
  /// Quantiles of the radius noise: of the von Mises distribution over pi.
  static TensorSpecs tables() {
    return {{"radius_noise", Number::kReal, {kNoiseTable + 1}}};
  }

  template <class T>
  struct Groups {
    PerceptionParams<T> perception;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("perception", perception);
    }
    void derive(const Groups<double>& exact) { perception.derive(exact.perception); }
  };

  template <class T>
  struct View : FaultySensor::View<T> {
    const T* radius_noise;
    explicit View(const Tables& t)
        : FaultySensor::View<T>(t), radius_noise(t.at<T>("radius_noise")) {}
  };

  /// What a sighting says besides the observation: contact, and the COLREGs' angle.
  template <class V>
  struct Sighting {
    Mask<V> contact;
    V phi;
  };

  /// `put(i, value)` writes the observation; u and v are the robot's own velocity in its frame.
  template <bool kWithFaults, class V, class S, class P, class Put, class T = Scalar<V>>
  MN_HD static Sighting<V> observe(const S& s, const P& p, const RandomStream<V>& random,
                                   const Observer<V>& self, V u, V v, int r, int w,
                                   const Put& put) {
    ObjectList<V> near;
    const auto contact = look_around<kWithFaults>(s, p, random, self, r, w, near);
    const V phi = colregs_angle(p, near, u, v);
    const V zero = splat<V>(T(0)), one = splat<V>(T(1));
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) {
      const auto valid = near.holds(k);
      const Object<V>& o = near.object[k];
      const int at = k * kObjectFeatures;
      put(at, select(valid, o.px, zero)), put(at + 1, select(valid, o.py, zero));
      put(at + 2, select(valid, o.vx, zero)), put(at + 3, select(valid, o.vy, zero));
      put(at + 4, select(valid, o.radius, zero));
      put(kObjects * kObjectFeatures + k, select(valid, one, zero));
    }
    return {contact, phi};
  }
};

}  // namespace marinenav
