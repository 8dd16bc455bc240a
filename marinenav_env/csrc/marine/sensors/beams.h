// A few beams ahead, and where each meets something (Lin et al., IROS 2023).
#pragma once

#include "marine/sensors/rays.h"

namespace marinenav {

constexpr int kBeams = 11;

#define MN_BEAM_PARAMS(X, XS) X(range) X(angle)
MN_PARAMS(BeamParams, MN_BEAM_PARAMS)
#undef MN_BEAM_PARAMS

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
  struct View {
    const T* beam;
    explicit View(const Tables& t) : beam(t.at<T>("beam")) {}
  };

  /// `put(i, value)` writes the observation: the point that a beam meets, or zeros.
  template <bool, class V, class S, class P, class Put, class T = Scalar<V>>
  MN_HD static RaySighting<V> observe(const S& s, const P& p, const RandomStream<V>& random,
                                      const Observer<V>& self, V, V, int r, int w,
                                      const Put& put) {
    const V zero = splat<V>(T(0)), one = splat<V>(T(1)), range = splat<V>(p.perception.range);
    V distance[kBeams];
    for (int i = 0; i < kBeams; ++i) distance[i] = splat<V>(kUnseen<T>);
    const auto contact = each_circle<V>(s, p, random, self, r, w, [&](const Circle<V>& circle) {
        for (int i = 0; i < kBeams; ++i)
        distance[i] = smaller(distance[i], along_ray(circle, s.beam[i], s.beam[kBeams + i]));
    });
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
