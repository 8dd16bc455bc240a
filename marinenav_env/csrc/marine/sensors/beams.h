// A few beams ahead, and where each meets something (Lin et al., IROS 2023).
#pragma once

#include "marine/sensors/rays.h"

namespace marinenav {

constexpr int kBeams = 11;

#define MN_BEAM_PARAMS(X, XS) X(range) X(angle) MN_RAY_FAULTS(X, XS)
MN_PARAMS(ListedBeamParams, MN_BEAM_PARAMS)
#undef MN_BEAM_PARAMS
template <class T>
using BeamParams = RayParams<ListedBeamParams, T>;

struct Beams : RowSensor<kBeams, 2> {
  static TensorSpecs observation() { return rows("x y"); }
  /// Direction of every beam in the body frame, from port to starboard.
  static TensorSpecs tables() { return {{"beam", Number::kReal, {2, kBeams}, "cos sin"}}; }

  template <class T>
  struct Groups {
    BeamParams<T> perception;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("perception", perception);
    }
    void derive(const Groups<double>&) {}
  };

  template <class T>
  struct View : FaultySensor::View<T> {
    const T* beam;
    explicit View(const Tables& t) : FaultySensor::View<T>(t), beam(t.at<T>("beam")) {}
  };

  /// `put(i, value)` writes the observation: the point that a beam meets, or zeros.
  template <bool kWithFaults, class V, class S, class P, class Put, class T = Scalar<V>>
  MN_HD static RaySighting<V> observe(const S& s, const P& p, const RandomStream<V>& random,
                                      const Observer<V>& self, V, V, int r, int w,
                                      const Put& put) {
    const V zero = splat<V>(T(0)), one = splat<V>(T(1)), range = splat<V>(p.perception.range);
    V distance[kBeams];
    for (int i = 0; i < kBeams; ++i) distance[i] = splat<V>(kUnseen<T>);
    const FaultsIf<kWithFaults, V> faults(s, p, random, r, w);
    const auto meet = [&](const Circle<V>& circle) {
      for (int i = 0; i < kBeams; ++i)
        distance[i] = smaller(distance[i], along_ray(circle, s.beam[i], s.beam[kBeams + i]));
    };
    const auto contact = each_circle<V>(s, p, random, faults, self, r, w, meet);
    if constexpr (kWithFaults)
      measure(p, random, faults, r, kBeams, distance, [&](int i, V found) { distance[i] = found; });
    for (int i = 0; i < kBeams; ++i) {
      const auto hit = distance[i] <= range;
      put(2 * i, select(hit, distance[i] * s.beam[i], zero));
      put(2 * i + 1, select(hit, distance[i] * s.beam[kBeams + i], zero));
      put(2 * kBeams + i, select(hit, one, zero));
    }
    return {contact};
  }
};

}  // namespace marinenav
