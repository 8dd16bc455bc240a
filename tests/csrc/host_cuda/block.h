// The threads of a CUDA block as fibers of one host thread, which meet at barriers.
//
// A fiber runs until it has to wait for others or ends; who goes on is drawn, so that a missing barrier
// shows in the results. Under the thread sanitizer each warp counts as a thread, and only barriers
// order what warps do. (Lanes of a warp may write one value to one place, which it would report.)
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

extern "C" {
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
}
#endif

/// Where a fiber, or who runs them, goes on.
class HostContext {
 public:
  void begin_with(void (*function)(), char* stack, size_t bytes) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, function, 0);
  }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  /// Goes on at another place, and returns when someone goes on here.
  void leave_for(HostContext& other) { swapcontext(&context_, &other.context_); }
#else
  /// The same without asking the system about signals, for which it takes 30 times as long. (To a
  /// sanitizer a jump is an unwound stack.)
  void leave_for(HostContext& other) {
    left_ = true;
    if (_setjmp(place_) != 0) return;
    if (other.left_) _longjmp(other.place_, 1);
    setcontext(&other.context_);
  }
#endif

 private:
  ucontext_t context_;
  jmp_buf place_;
  bool left_ = false;
};

struct HostIndex {
  unsigned int x = 0;
};
inline HostIndex blockIdx, blockDim, threadIdx;

class HostBlock {
 public:
  static constexpr unsigned int kWarp = 32;
  static constexpr size_t kStack = 256 * 1024;

  /// Runs `body` once for every thread of the block that the indices name.
  void run(const std::function<void()>& body) {
    ignore(true);
    body_ = &body;
    current_ = this;
    grow();
    left_ = threads();
    tell(begun_);
    for (unsigned int i = 0; i < threads(); ++i) fibers_[i]->waits = Wait::kNothing;
    while (left_ > 0) {
      order_.clear();
      for (unsigned int i = 0; i < threads(); ++i)
        if (fibers_[i]->waits == Wait::kNothing) order_.push_back(i);
      std::shuffle(order_.begin(), order_.end(), random_);
      for (const unsigned int i : order_) enter(i);
      if (left_ > 0 && order_.empty()) release();
    }
    hear(ended_);
    ignore(false);
  }

  /// What `__syncthreads` does.
  static void synchronize() { current_->wait(Wait::kBlock); }

  /// What `__ballot_sync` of a whole warp does.
  static unsigned int ballot(bool vote) {
    ignore(true);
    Fiber& fiber = *current_->fibers_[threadIdx.x];
    fiber.vote = vote;
    ignore(false);
    current_->wait(Wait::kWarp);
    ignore(true);
    const unsigned int ballot = fiber.ballot;
    ignore(false);
    return ballot;
  }

 private:
  enum class Wait { kNothing, kWarp, kBlock, kEnded };
  struct Fiber {
    HostContext context;
    std::unique_ptr<char[]> stack{new char[kStack]};  // unlike a vector's, untouched until it is needed
    Wait waits;
    bool vote;
    unsigned int ballot;
  };

  static unsigned int threads() { return blockDim.x; }

  void grow() {
    while (fibers_.size() < threads()) {
      fibers_.push_back(std::make_unique<Fiber>());
      Fiber& fiber = *fibers_.back();
      fiber.context.begin_with(&HostBlock::main, fiber.stack.get(), kStack);
    }
#ifdef __SANITIZE_THREAD__
    while (warps_.size() * kWarp < threads()) warps_.push_back(__tsan_create_fiber(0));
#endif
  }

  /// What a fiber does: its thread of one block after another.
  static void main() {
    current_->arrived(nullptr);
    while (true) {
      current_->hear(current_->begun_);
      (*current_->body_)();
      current_->tell(current_->ended_);
      current_->leave(Wait::kEnded);
    }
  }

  /// Goes from the scheduler to a fiber, and returns when that waits.
  void enter(unsigned int i) {
    threadIdx.x = i;
#ifdef __SANITIZE_THREAD__
    scheduler_fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(warps_[i / kWarp], __tsan_switch_to_fiber_no_sync);
#endif
#ifdef __SANITIZE_ADDRESS__
    void* own = nullptr;
    __sanitizer_start_switch_fiber(&own, fibers_[i]->stack.get(), kStack);
#endif
    scheduler_.leave_for(fibers_[i]->context);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  }

  /// Goes from a fiber to the scheduler, and returns when the fiber may go on.
  void leave(Wait reason) {
    ignore(true);
    Fiber& fiber = *fibers_[threadIdx.x];
    fiber.waits = reason;
    if (reason == Wait::kEnded) --left_;
    ignore(false);
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(scheduler_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
    void* own = nullptr;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&own, scheduler_stack_, scheduler_size_);
#endif
    fiber.context.leave_for(scheduler_);
    arrived(own);
  }

  void wait(Wait reason) {
    if (reason == Wait::kBlock) tell(met_);
    leave(reason);
    if (reason == Wait::kBlock) hear(released_);
  }

  /// Lets those go on whose warp, or whose block, has come to the same barrier.
  void release() {
    bool some = false;
    for (unsigned int first = 0; first < threads(); first += kWarp) {
      unsigned int ballot = 0;
      bool all = first + kWarp <= threads();
      for (unsigned int i = first; i < first + kWarp && all; ++i) {
        all = fibers_[i]->waits == Wait::kWarp;
        ballot |= (fibers_[i]->vote ? 1u : 0u) << (i - first);
      }
      for (unsigned int i = first; i < first + kWarp && all; ++i) {
        fibers_[i]->waits = Wait::kNothing;
        fibers_[i]->ballot = ballot;
      }
      some = some || all;
    }
    if (some) return;
    for (unsigned int i = 0; i < threads(); ++i) {
      if (fibers_[i]->waits != Wait::kBlock) {
        std::fprintf(stderr, "a block's threads wait at different barriers, or one has ended\n");
        std::abort();
      }
      fibers_[i]->waits = Wait::kNothing;
    }
    hear(met_), tell(released_);
  }

  // ---- what sanitizers have to know ------------------------------------------------------------
  // The scheduler's own reads and writes do not count. A block's begin, barriers and end order what its
  // threads do: who tells at one of these comes before who hears of it.

#ifdef __SANITIZE_THREAD__
  void tell(char& at) { __tsan_release(&at); }
  void hear(char& at) { __tsan_acquire(&at); }
  static void ignore(bool begin) {
    if (begin) {
      AnnotateIgnoreReadsBegin(__FILE__, __LINE__), AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    } else {
      AnnotateIgnoreWritesEnd(__FILE__, __LINE__), AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
  }
  std::vector<void*> warps_;
  void* scheduler_fiber_ = nullptr;
#else
  void tell(char&) {}
  void hear(char&) {}
  static void ignore(bool) {}
#endif
  char begun_ = 0, met_ = 0, released_ = 0, ended_ = 0;

#ifdef __SANITIZE_ADDRESS__
  void arrived(void* own) {
    __sanitizer_finish_switch_fiber(own, &scheduler_stack_, &scheduler_size_);
  }
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_size_ = 0;
#else
  void arrived(void*) {}
#endif

  static inline HostBlock* current_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<unsigned int> order_;
  std::mt19937 random_{1};
  HostContext scheduler_;
  unsigned int left_ = 0;
};
