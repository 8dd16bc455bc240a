// Stream: a current that is the same everywhere, drawn anew in every episode.
#pragma once

#include "kernel/params.h"
#include "kernel/philox.h"
#include "marine/purposes.h"
#include "marine/water/component.h"

namespace marinenav {

#define MN_STREAM_PARAMS(X, XS) XS(speed, 2) XS(direction, 2)
MN_PARAMS(StreamParams, MN_STREAM_PARAMS)
#undef MN_STREAM_PARAMS

struct Stream : Component {
  template <class T>
  struct Groups {
    StreamParams<T> stream;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("stream", stream);
    }
    template <class Params>
    void derive(const Params&) {}
  };

  static TensorSpecs specs() {
    return {{"stream", Number::kReal, {2, "stride"}, "x y"}};  // m/s, world frame
  }

  template <class T>
  struct View {
    T* stream;
    explicit View(const Tables& t) : stream(t.at<T>("stream")) {}
  };

  template <class S, class Params, class V>
  MN_HD static void flow(const S& s, const Params& p, int w, V, V, Vec2<V>& sum) {
    if (!(p.stream.speed[1] > 0)) return;
    sum.x = sum.x + load<V>(s.stream + w);
    sum.y = sum.y + load<V>(s.stream + s.stride + w);
  }

  template <class Placement, class T>
  MN_HD static void place(const Placement& place, const T*) {
    const auto& stream = place.p.stream;
    const Philox4<uint32_t> bits = place.random.draw(Purpose::kStream, 0, 0);
    const T speed = between(stream.speed[0], stream.speed[1], bits.w0);
    const SinCos<T> toward = sincos_of(between(stream.direction[0], stream.direction[1], bits.w1));
    place.s.stream[place.w] = speed * toward.cos;
    place.s.stream[place.s.stride + place.w] = speed * toward.sin;
  }
};

}  // namespace marinenav
