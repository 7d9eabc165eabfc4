// Tells ThreadSanitizer of hand-overs between threads that it cannot see: arguments reach a procedure, and results its
// caller, through a region that is mapped twice, by code of this library that was compiled without ThreadSanitizer. All
// of this does nothing in programs without ThreadSanitizer. The call path's part is compiled into a user's stubs, and
// only with -fsanitize=thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(LRPC_INSTRUMENTED_RUNTIME)  // this project's own build with ThreadSanitizer, which is to see everything
#elif defined(__SANITIZE_THREAD__)
#define LRPC_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LRPC_THREAD_SANITIZER 1
#endif
#endif

// Of ThreadSanitizer's run-time library, if the program has it: from <sanitizer/tsan_interface.h>.
extern "C" {
[[gnu::weak]] void __tsan_acquire(void* address);  // NOLINT: not our name
[[gnu::weak]] void __tsan_release(void* address);  // NOLINT: not our name
}

namespace lrpc::shim {

/// Whether the program has ThreadSanitizer, even if the library has not.
[[nodiscard]] inline bool has_thread_sanitizer() noexcept { return &__tsan_acquire != nullptr; }

/// Stand for what is handed over: ThreadSanitizer orders threads that name the same place. If two hand-overs share a
/// place by chance, it may miss a race, but it reports no false one.
extern std::array<char, 4096> handover_places;

/// The place of one A-stack of a binding, by its image, which has the same page offset in both domains. With null, the
/// place of the binding itself.
[[nodiscard]] inline void* handover_place(std::uint64_t binding, const std::byte* image) noexcept {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t key = binding * kPage + (reinterpret_cast<std::uintptr_t>(image) & (kPage - 1)) / 8;
  return &handover_places[(key * 0x9e37'79b9'7f4a'7c15U) >> 52];
}

/// Hands what this thread has done so far to the thread that calls take_over() at this place. Not on the call path.
inline void hand_over(void* place) noexcept {
  if (has_thread_sanitizer()) __tsan_release(place);
}
inline void take_over(void* place) noexcept {
  if (has_thread_sanitizer()) __tsan_acquire(place);
}

// For functions that use the library's own records: they are checked only in the library's own builds, where all code
// is instrumented.
#if defined(LRPC_THREAD_SANITIZER)
#define LRPC_OF_THE_RUNTIME [[gnu::no_sanitize_thread]]
#else
#define LRPC_OF_THE_RUNTIME
#endif

// The same on the call path: only in code that was compiled with ThreadSanitizer.
#ifdef LRPC_THREAD_SANITIZER
inline void hand_over_call(std::uint64_t binding, const std::byte* image) noexcept {
  __tsan_release(handover_place(binding, image));
}
inline void take_over_call(std::uint64_t binding, const std::byte* image) noexcept {
  __tsan_acquire(handover_place(binding, image));
}
#else
inline void hand_over_call(std::uint64_t /*binding*/, const std::byte* /*image*/) noexcept {}
inline void take_over_call(std::uint64_t /*binding*/, const std::byte* /*image*/) noexcept {}
#endif

}  // namespace lrpc::shim
