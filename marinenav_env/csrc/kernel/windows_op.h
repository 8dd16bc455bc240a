// The operator that looks ahead of a replay's transitions, as n-step returns need it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <tuple>

#include "kernel/arguments.h"
#include "kernel/block_size.h"

namespace marinenav {

/// Whether a robot acted in a decision, terminated in it, and was truncated, side by side.
enum class Flag { kActed, kTerminated, kTruncated };
constexpr int kFlags = 3;

/// The window of n decisions of one slot, cut where its episode ends, in front of a decision in which
/// its robot did not act, and behind the newest row of the ring.
template <class T>
struct Windows {
  using Value = T;
  static constexpr bool kPerRobot = false;
  const int64_t* index;  // [B], row * slots + slot
  const bool* flags;     // [rows, slots, kFlags]
  const T* reward;       // [rows, slots]
  const int64_t* position;
  const T* discounts;  // [n + 1], powers of gamma
  int64_t rows, slots;
  int n;
  T* terms;               // [B, n], of the return; 0 behind the window
  int64_t* last;          // [B]
  T* discount;            // [B]

  MN_HD bool flag(int64_t at, Flag which) const {
    return flags[at * kFlags + static_cast<int>(which)];
  }

  MN_HD void operator()(int, int i) const {
    int64_t at = index[i];
    const int64_t newer = (*position - 1 - at / slots + 2 * rows) % rows;  // rows after this one
    T* term = terms + int64_t{i} * n;
    int taken = 0;
    bool ended = false;
    for (int64_t next = at; taken < n && taken <= newer && !ended; ++taken) {
      if (!flag(next, Flag::kActed)) break;
      term[taken] = reward[next] * discounts[taken];
      ended = flag(next, Flag::kTerminated) || flag(next, Flag::kTruncated);
      at = next;
      next += slots;
      if (next >= rows * slots) next -= rows * slots;
    }
    for (int k = taken; k < n; ++k) term[k] = 0;
    last[i] = at;
    discount[i] = flag(at, Flag::kTerminated) ? T(0) : discounts[taken];
  }
};

/// Terms, last slots and discounts of the windows that begin at slots `index`.
template <class Backend>
std::tuple<at::Tensor, at::Tensor, at::Tensor> windows(
    const at::Tensor& index, const at::Tensor& flags, const at::Tensor& reward,
    const at::Tensor& position, const at::Tensor& discounts) {
  TORCH_CHECK(reward.dim() >= 2 && reward.numel() > 0, "marinenav: `reward` has shape ",
              reward.sizes(), ", expected [rows, slots...]");
  TORCH_CHECK(discounts.numel() > 1, "marinenav: `discounts` has ", discounts.numel(),
              " entries, expected the powers 0 to n, and n > 0");
  const auto check = [&](const at::Tensor& t, const char* name, c10::ScalarType type,
                         int64_t count) {
    TORCH_CHECK(t.device() == reward.device() && t.scalar_type() == type && t.is_contiguous() &&
                    t.numel() == count,
                "marinenav: `", name, "` must be ", count, " of ", type, ", contiguous, on ",
                reward.device());
  };
  const c10::ScalarType real = reward.scalar_type();
  TORCH_CHECK(real == c10::kFloat || real == c10::kDouble, "marinenav: `reward` has dtype ", real,
              ", expected Float or Double");
  const int64_t draws = index.numel();
  TORCH_CHECK(draws <= kMostAtOnce, "marinenav: `index` has ", draws, " entries, which is too many");
  check(index, "index", c10::kLong, draws);
  TORCH_CHECK(index.dim() == 1, "marinenav: `index` has shape ", index.sizes(), ", expected [B]");
  check(flags, "flags", c10::kBool, reward.numel() * kFlags);
  check(reward, "reward", real, reward.numel());
  check(position, "position", c10::kLong, 1);
  check(discounts, "discounts", real, discounts.numel());
  const c10::DeviceGuard guard(reward.device());
  at::Tensor terms = at::empty({draws, discounts.numel() - 1}, reward.options());
  at::Tensor discount = at::empty({draws}, reward.options());
  at::Tensor last = at::empty_like(index);
  dispatch(real, [&](auto number) {
    using T = decltype(number);
    Backend::launcher()(
        static_cast<int>(draws), 1,
        Windows<T>{index.const_data_ptr<int64_t>(), flags.const_data_ptr<bool>(),
                   reward.const_data_ptr<T>(), position.const_data_ptr<int64_t>(),
                   discounts.const_data_ptr<T>(), reward.size(0),
                   reward.numel() / reward.size(0), static_cast<int>(discounts.numel()) - 1,
                   terms.data_ptr<T>(), last.data_ptr<int64_t>(), discount.data_ptr<T>()});
  });
  return {terms, last, discount};
}

}  // namespace marinenav
