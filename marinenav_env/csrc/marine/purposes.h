// What random numbers of the marine environments are for.
#pragma once

#include "kernel/philox.h"

namespace marinenav {

/// The top byte of a counter's last word: no two uses share a draw, and none is ever given twice.
struct Purpose {
  enum : uint32_t {
    kRobot = 1, kHeading = 2, kVortex = 3, kBuoy = 4, kRobotNoise = 5, kBuoyNoise = 6,
    kWind = 7, kGust = 8, kStream = 9, kWave = 10,
    kThrusterLoss = 11, kVariation = 12, kSensorFactors = 13, kBlind = 14, kMiss = 15,
    kScene = 16, kFringe = 17, kRayNoise = 18
  };
};

/// Uniform in [low, high).
template <class T>
MN_HD T between(T low, T high, uint32_t bits) {
  return low + (high - low) * uniform<T>(bits);
}

}  // namespace marinenav
