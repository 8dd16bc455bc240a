// The operator that finds slots of a replay by running sums of their weights.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <tuple>

#include "kernel/block_size.h"
#include "kernel/lane.h"

namespace marinenav {

/// Weights in blocks of `kFanout`, the blocks' sums in such blocks again, and so on: level 0 holds the
/// weights, the last one few sums, whose running sums are given.
struct FindSlot {
  using Value = float;
  static constexpr bool kPerRobot = false;
  static constexpr int kFanout = 64, kMostLevels = 8;  // the former as in `sum_tree.py`
  const int64_t* level[kMostLevels];
  int levels, top;         // how many there are, and sums in the last one
  const int64_t* running;  // [top]
  const int64_t* target;   // [B]
  int64_t *slot, *weight;  // [B]

  /// The first of the top level's sums with which the running sum passes the target.
  MN_HD int64_t first_of_top(int64_t wanted) const {
    int64_t low = 0, high = top - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (running[middle] > wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  MN_HD void operator()(int, int i) const {
    int64_t wanted = target[i];
    int64_t index = first_of_top(wanted);
    int64_t found = level[levels - 1][index];
    wanted -= running[index] - found;
    for (int k = levels - 2; k >= 0; --k) {
      const int64_t* block = level[k] + index * kFanout;
      int child = 0;
      found = block[0];
      while (child < kFanout - 1 && found <= wanted) {
        wanted -= found;
        found = block[++child];
      }
      index = index * kFanout + child;
    }
    slot[i] = index;
    weight[i] = found;
  }
};

/// The slots of the targets and their weights, [B] each.
template <class Backend>
std::tuple<at::Tensor, at::Tensor> find_slots(at::TensorList levels, const at::Tensor& running,
                                              const at::Tensor& target) {
  TORCH_CHECK(!levels.empty() && levels.size() <= FindSlot::kMostLevels, "marinenav: `levels` holds ",
              levels.size(), " tensors, expected 1 to ", FindSlot::kMostLevels);
  const auto check = [&](const at::Tensor& t, const char* name, int64_t length) {
    TORCH_CHECK(t.device() == target.device() && t.scalar_type() == c10::kLong && t.dim() == 1 &&
                    t.is_contiguous() && t.size(0) == length,
                "marinenav: `", name, "` must be ", length, " int64 side by side on ",
                target.device());
  };
  FindSlot find{};
  find.levels = static_cast<int>(levels.size());
  int64_t length = levels.back().numel();
  TORCH_CHECK(length > 0 && length <= 1 << 30, "marinenav: the last of `levels` holds ", length,
              " sums, expected 1 to ", 1 << 30);
  find.top = static_cast<int>(length);
  for (int k = find.levels - 1; k >= 0; --k) {
    const at::Tensor& sums = levels[static_cast<size_t>(k)];
    // Above a level there is a sum for each of its blocks, and perhaps some more.
    const int64_t blocks = sums.numel() / FindSlot::kFanout;
    TORCH_CHECK(k == find.levels - 1 ||
                    (sums.numel() % FindSlot::kFanout == 0 && blocks <= length && blocks > 0),
                "marinenav: level ", k, " of `levels` has ", sums.numel(),
                " entries, expected up to ", length, " blocks of ", FindSlot::kFanout);
    length = sums.numel();
    check(sums, "levels", length);
    find.level[k] = sums.const_data_ptr<int64_t>();
  }
  const int64_t draws = target.numel();
  TORCH_CHECK(draws <= kMostAtOnce, "marinenav: `target` has ", draws, " entries, which is too many");
  check(running, "running", find.top);
  check(target, "target", draws);
  const c10::DeviceGuard guard(target.device());
  at::Tensor slot = at::empty_like(target), weight = at::empty_like(target);
  find.running = running.const_data_ptr<int64_t>();
  find.target = target.const_data_ptr<int64_t>();
  find.slot = slot.data_ptr<int64_t>();
  find.weight = weight.data_ptr<int64_t>();
  Backend::launcher()(static_cast<int>(draws), 1, find);
  return {slot, weight};
}

}  // namespace marinenav
