// Plane vectors.
#pragma once

#include "kernel/lane.h"

namespace marinenav {

template <class V>
struct Vec2 {
  V x, y;
};

template <class V>
MN_HD Vec2<V> operator+(const Vec2<V>& a, const Vec2<V>& b) {
  return {a.x + b.x, a.y + b.y};
}

template <class T>
MN_HD T distance(T ax, T ay, T bx, T by) {
  return square_root((ax - bx) * (ax - bx) + (ay - by) * (ay - by));
}

}  // namespace marinenav
