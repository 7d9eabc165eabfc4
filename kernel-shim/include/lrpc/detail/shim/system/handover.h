// What ThreadSanitizer is told of hand-overs between threads that it cannot see: a call's arguments reach its
// procedure, and the results its caller, through a region that is mapped twice, by code of this library that was
// compiled without it. All of this is nothing in programs without ThreadSanitizer: what the call path does is compiled
// into a user's stubs, with -fsanitize=thread or not at all.
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

// Of its run-time library, where the program has it: from <sanitizer/tsan_interface.h>.
extern "C" {
[[gnu::weak]] void __tsan_acquire(void* address);  // NOLINT: not our name
[[gnu::weak]] void __tsan_release(void* address);  // NOLINT: not our name
}

namespace lrpc::shim {

/// Whether the program has ThreadSanitizer, also where the library has not.
[[nodiscard]] inline bool has_thread_sanitizer() noexcept { return &__tsan_acquire != nullptr; }

/// Stand for what is handed over: ThreadSanitizer orders threads that name the same one. Two that share a place by
/// chance are ordered too much, so that a race may be missed; none is made up.
extern std::array<char, 4096> handover_places;

/// The place of one A-stack of a binding: its image, which both domains map at addresses of the same page offset. Of
/// the binding itself with null.
[[nodiscard]] inline void* handover_place(std::uint64_t binding, const std::byte* image) noexcept {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t key = binding * kPage + (reinterpret_cast<std::uintptr_t>(image) & (kPage - 1)) / 8;
  return &handover_places[(key * 0x9e37'79b9'7f4a'7c15U) >> 52];
}

/// What this thread has done so far is for whoever takes it over at this place. Not on the call path.
inline void hand_over(void* place) noexcept {
  if (has_thread_sanitizer()) __tsan_release(place);
}
inline void take_over(void* place) noexcept {
  if (has_thread_sanitizer()) __tsan_acquire(place);
}

// What the library's own threads do with its own records is checked in its own builds, where all of it is instrumented.
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
