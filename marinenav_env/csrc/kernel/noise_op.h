// The operators that put a layer's factorised noise, a draw for every row, where it belongs.
//
// Fortunato et al. 2018, "Noisy Networks for Exploration", eq. 10 and 11: with f(e) = sign(e) sqrt|e|,
// y = W x + b + f(e_out) (W_sigma (f(e_in) x) + b_sigma), for normal e of every input and output.
// On a GPU each is one pass over what are the largest tensors of a decision. On a CPU it is torch's
// own operations, whose square root is not always the nearest number: trainings repeat to the bit.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/BFloat16.h>
#include <torch/library.h>

#include "kernel/block_size.h"
#include "kernel/lane.h"

namespace marinenav {

MN_HD float signed_root(float e) { return copysignf(square_root(absolute(e)), e); }

/// f(e_in) x.
template <class X>
struct NoisyInput {
  using Value = float;
  static constexpr bool kPerRobot = false;
  const float* noise;
  const X* x;
  float* out;

  MN_HD void operator()(int, int i) const {
    out[i] = signed_root(noise[i]) * static_cast<float>(x[i]);
  }
};

/// y.
template <class X>
struct NoisyOutput {
  using Value = float;
  static constexpr bool kPerRobot = false;
  const float* noise;
  const X *spread, *mean;  // W_sigma (f(e_in) x) and W x
  const float *bias_spread, *bias;
  uint32_t width;
  float* out;

  MN_HD void operator()(int, int i) const {
    const uint32_t column = static_cast<uint32_t>(i) % width;
    const float root = signed_root(noise[i]);
    const float own = bias_spread[column] * root + bias[column];
    out[i] = (root * static_cast<float>(spread[i]) + static_cast<float>(mean[i])) + own;
  }
};

inline void check_noise(const at::Tensor& noise) {
  TORCH_CHECK(noise.scalar_type() == c10::kFloat && noise.dim() > 0 && noise.is_contiguous(),
              "marinenav: `noise` has dtype ", noise.scalar_type(),
              ", expected a contiguous tensor of Float");
  TORCH_CHECK(noise.numel() <= kMostAtOnce,
              "marinenav: `noise` has ", noise.numel(), " numbers, which is too many: act in parts");
}

/// Checks a tensor with a number for each of the noise, in float32 or bfloat16.
inline at::Tensor checked_like_noise(const at::Tensor& t, const char* name, const at::Tensor& noise) {
  TORCH_CHECK(t.device() == noise.device() && t.sizes() == noise.sizes() &&
                  (t.scalar_type() == c10::kFloat || t.scalar_type() == c10::kBFloat16),
              "marinenav: `", name, "` has shape ", t.sizes(), " and dtype ", t.scalar_type(),
              ", expected ", noise.sizes(), " of Float or BFloat16 on ", noise.device());
  return t.contiguous();
}

/// Checks the arguments of `noisy_output` after the noise; `spread` and `mean` are of one format.
inline void check_biases(const at::Tensor& noise, const at::Tensor& spread, const at::Tensor& mean,
                         const at::Tensor& bias_spread, const at::Tensor& bias) {
  TORCH_CHECK(spread.scalar_type() == mean.scalar_type(), "marinenav: `mean` has dtype ",
              mean.scalar_type(), ", expected ", spread.scalar_type(), " as `spread`");
  for (const at::Tensor& t : {bias_spread, bias})
    TORCH_CHECK(t.device() == noise.device() && t.scalar_type() == c10::kFloat && t.dim() == 1 &&
                    t.is_contiguous() && t.size(0) == noise.size(-1),
                "marinenav: both biases must be ", noise.size(-1), " of Float side by side on ",
                noise.device());
}

template <class Body>
void with_format(const at::Tensor& t, const Body& body) {
  if (t.scalar_type() == c10::kFloat) {
    body(float{});
  } else {
    body(c10::BFloat16{});
  }
}

/// One pass each, with a launcher of phases.
template <class Backend>
at::Tensor noisy_input(const at::Tensor& noise, const at::Tensor& x) {
  check_noise(noise);
  const at::Tensor input = checked_like_noise(x, "x", noise);
  const c10::DeviceGuard guard(noise.device());
  at::Tensor out = at::empty_like(noise);
  with_format(input, [&](auto number) {
    using X = decltype(number);
    Backend::launcher()(static_cast<int>(noise.numel()), 1,
                        NoisyInput<X>{noise.const_data_ptr<float>(), input.const_data_ptr<X>(),
                                      out.data_ptr<float>()});
  });
  return out;
}

template <class Backend>
at::Tensor noisy_output(const at::Tensor& noise, const at::Tensor& spread, const at::Tensor& mean,
                        const at::Tensor& bias_spread, const at::Tensor& bias) {
  check_noise(noise);
  const at::Tensor own = checked_like_noise(spread, "spread", noise);
  const at::Tensor center = checked_like_noise(mean, "mean", noise);
  check_biases(noise, own, center, bias_spread, bias);
  const c10::DeviceGuard guard(noise.device());
  at::Tensor out = at::empty_like(noise);
  with_format(own, [&](auto number) {
    using X = decltype(number);
    Backend::launcher()(
        static_cast<int>(noise.numel()), 1,
        NoisyOutput<X>{noise.const_data_ptr<float>(), own.const_data_ptr<X>(),
                       center.const_data_ptr<X>(), bias_spread.const_data_ptr<float>(),
                       bias.const_data_ptr<float>(), static_cast<uint32_t>(noise.size(-1)),
                       out.data_ptr<float>()});
  });
  return out;
}

}  // namespace marinenav
