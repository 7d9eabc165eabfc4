// A memory reserve, so that a daemon that runs out of memory can finish what it has begun; it then begins nothing new.
//
// A program that links this library gets an operator new that takes memory from the reserve when malloc(3) fails, and
// throws only when the reserve is used up, too. Not under a sanitizer.
#pragma once

#include <cstddef>

namespace lrpc::reserve {

/// Size of the reserve. It exists from the program's start; its pages are written, so that the kernel has allocated
/// them.
inline constexpr std::size_t kBytes = 1 << 20;

/// Whether the program should begin nothing that keeps memory: half of the reserve is in use, and malloc(3) still
/// fails. Thread-safe; takes a lock that is held only briefly.
[[nodiscard]] bool short_of_memory() noexcept;
/// Bytes of the reserve in use now, including their headers. Thread-safe.
[[nodiscard]] std::size_t used() noexcept;
/// The highest value of used() so far. Thread-safe.
[[nodiscard]] std::size_t most_used() noexcept;

/// The part of the reserve (bytes) that only the threads chosen by keep_last_for() may use.
inline constexpr std::size_t kLast = kBytes / 4;
/// From now on, only threads for which `who` returns true may use the last kLast bytes: threads in code where nothing
/// may throw. `who` must not allocate or take a lock. Null: all threads may use the whole reserve again. Thread-safe.
void keep_last_for(bool (*who)() noexcept) noexcept;

}  // namespace lrpc::reserve
