// Writes a row of rings whose position is on the device, as a replay stores a decision.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernel/lane.h"

namespace marinenav {

/// A tensor [slots, ...], or the same places in each slot of a larger one, that becomes a part of a
/// ring's row [slots, ...].
struct RowPart {
  const char* from;
  char* ring;          // where this part of the first slot of row 0 is
  int64_t row_bytes;   // of the ring
  int bytes;           // of a slot
  int64_t from_stride, stride;  // bytes from a slot to the next: of the tensor, of the ring
  int word;            // bytes that a thread of a GPU copies, 1 or 4
  int64_t first_word;  // of the tensor, among the words of all parts
};

struct Row {
  static constexpr int kMostParts = 24;
  RowPart part[kMostParts];
  int parts, slots;
  int64_t rows;   // of every ring
  int64_t words;  // of all parts
  const int64_t* position;

  MN_HD char* to(const RowPart& p, int64_t slot) const {
    return p.ring + *position * p.row_bytes + slot * p.stride;
  }
};

/// Copies a slot at a time, as suits a CPU.
struct RowSlots {
  using Value = float;
  static constexpr bool kPerRobot = true;  // parts in the place of robots
  Row row;

  void operator()(int k, int slot) const {
    const RowPart& p = row.part[k];
    std::memcpy(row.to(p, slot), p.from + slot * p.from_stride, static_cast<size_t>(p.bytes));
  }
};

/// Copies a word a thread, so that neighbours touch neighbouring memory, as suits a GPU.
struct RowWords {
  using Value = float;
  static constexpr bool kPerRobot = false;
  Row row;

  template <class Word>
  MN_HD void copy(const RowPart& p, uint32_t word) const {
    const uint32_t words = static_cast<uint32_t>(p.bytes) / sizeof(Word);  // of a slot
    const uint32_t slot = word / words, place = word % words;
    reinterpret_cast<Word*>(row.to(p, slot))[place] =
        reinterpret_cast<const Word*>(p.from + slot * p.from_stride)[place];
  }

  MN_HD void operator()(int, int word) const {
    int k = 0;  // observations come first, and are most
    while (k + 1 < row.parts && row.part[k + 1].first_word <= word) ++k;
    const RowPart& p = row.part[k];
    const uint32_t own = static_cast<uint32_t>(word - p.first_word);
    if (p.word == 4) {
      copy<uint32_t>(p, own);
    } else {
      copy<uint8_t>(p, own);
    }
  }
};

}  // namespace marinenav
