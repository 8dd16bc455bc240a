// Threads a block of the CUDA kernels. Free of CUDA, so that it can be tested without.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

namespace marinenav {

// Any kernel can launch with the largest size: a thread takes at most 255 registers, handed out as
// 256, and a block has 65,536 of them. With 1,024 threads the larger kernels cannot launch.
constexpr int kSmallestBlock = 32, kUsualBlock = 128, kLargestBlock = 256;

/// Numbers that one launch can work on: whole blocks of them have to fit into an int.
constexpr int kMostAtOnce = std::numeric_limits<int>::max() - kLargestBlock;

/// Threads of a launch with one for each of `rows` in each of `worlds`, which may also be plans and
/// vessels. Throws std::length_error if they are more than a launch can work on.
inline int launched(int worlds, int rows) {
  const int64_t count = int64_t{worlds} * rows;
  if (count > kMostAtOnce)
    throw std::length_error("marinenav: " + std::to_string(worlds) + " times " + std::to_string(rows) +
                            " is too much for one launch: give fewer worlds or vessels at once");
  return static_cast<int>(count);
}

/// The size that a value of MARINENAV_BLOCK_SIZE asks for; the usual one if it is unset or empty.
/// Throws std::invalid_argument if it is no whole number in the range.
inline int block_size_from(const char* text) {
  if (text == nullptr || *text == '\0') return kUsualBlock;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < kSmallestBlock || value > kLargestBlock) {
    throw std::invalid_argument("marinenav: MARINENAV_BLOCK_SIZE=" + std::string(text) +
                                ": give a whole number from " + std::to_string(kSmallestBlock) +
                                " to " + std::to_string(kLargestBlock) + ", or unset it");
  }
  return static_cast<int>(value);
}

}  // namespace marinenav
