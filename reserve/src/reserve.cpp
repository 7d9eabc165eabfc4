#include "lrpc/reserve.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>

namespace lrpc::reserve {
namespace {

/// The greatest alignment that the reserve offers: that of data that two processors write in turn.
constexpr std::size_t kUnit = 128;

/// The header of each piece, free or in use. The memory that the user gets follows it.
struct alignas(kUnit) Piece {
  std::size_t bytes;  ///< Including this header.
  Piece* next;        ///< The next free piece, by address.
};

/// First fit; adjacent free pieces are joined. Slow with many pieces, but used only after malloc(3) has failed.
class Reserve {
 public:
  Reserve() noexcept {
    std::memset(memory_, 1, sizeof memory_);
    free_ = new (memory_) Piece{sizeof memory_, nullptr};
  }

  void* take(std::size_t bytes) noexcept {
    if (bytes > sizeof memory_) return nullptr;
    const std::size_t wanted = sizeof(Piece) + (bytes + kUnit - 1) / kUnit * kUnit;
    const auto who = keeps_last_for_.load();
    const std::size_t most = who == nullptr || who() ? sizeof memory_ : sizeof memory_ - kLast;
    const std::lock_guard lock(mutex_);
    if (wanted > most - std::min(used_, most)) return nullptr;
    for (Piece** at = &free_; *at != nullptr; at = &(*at)->next) {
      Piece* const piece = *at;
      if (piece->bytes < wanted) continue;
      if (piece->bytes - wanted > sizeof(Piece)) {
        *at = new (reinterpret_cast<std::byte*>(piece) + wanted) Piece{piece->bytes - wanted, piece->next};
        piece->bytes = wanted;
      } else {
        *at = piece->next;
      }
      used_ += piece->bytes;
      most_used_ = std::max(most_used_, used_);
      return piece + 1;
    }
    return nullptr;
  }

  void give_back(void* memory) noexcept {
    Piece* const piece = static_cast<Piece*>(memory) - 1;
    const std::lock_guard lock(mutex_);
    used_ -= piece->bytes;
    Piece* before = nullptr;
    Piece* after = free_;
    while (after != nullptr && after < piece) {
      before = after;
      after = after->next;
    }
    piece->next = after;
    (before != nullptr ? before->next : free_) = piece;
    if (after != nullptr) join(*piece);
    if (before != nullptr) join(*before);
  }

  [[nodiscard]] bool has(const void* memory) const noexcept {
    const std::less<const void*> before;
    return !before(memory, memory_) && before(memory, memory_ + sizeof memory_);
  }
  [[nodiscard]] std::size_t used() noexcept {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  [[nodiscard]] std::size_t most_used() noexcept {
    const std::lock_guard lock(mutex_);
    return most_used_;
  }
  void keep_last_for(bool (*who)() noexcept) noexcept { keeps_last_for_.store(who); }

 private:
  /// Joins `piece` with the next free one, if that begins where `piece` ends.
  static void join(Piece& piece) noexcept {
    if (piece.next == nullptr ||
        reinterpret_cast<std::byte*>(&piece) + piece.bytes != reinterpret_cast<std::byte*>(piece.next))
      return;
    piece.bytes += piece.next->bytes;
    piece.next = piece.next->next;
  }

  std::atomic<bool (*)() noexcept> keeps_last_for_{nullptr};
  std::mutex mutex_;
  std::size_t used_ = 0;
  std::size_t most_used_ = 0;
  Piece* free_ = nullptr;
  alignas(kUnit) std::byte memory_[kBytes];
};

/// Constructed at its first use, at the latest when the program's statics are initialised. Never destroyed: memory from
/// it may outlive any static.
Reserve& all() noexcept {
  alignas(Reserve) static std::byte place[sizeof(Reserve)];
  static Reserve* const made = new (place) Reserve;
  return *made;
}
[[maybe_unused]] const Reserve& at_start = all();

}  // namespace

bool short_of_memory() noexcept {
  if (all().used() < kBytes / 2) return false;
  void* volatile probe = std::malloc(kBytes / 16);  // volatile: a compiler may leave out what nobody uses
  const bool none = probe == nullptr;
  std::free(probe);
  return none;
}

std::size_t used() noexcept { return all().used(); }
std::size_t most_used() noexcept { return all().most_used(); }
void keep_last_for(bool (*who)() noexcept) noexcept { all().keep_last_for(who); }

}  // namespace lrpc::reserve

// A sanitizer replaces all these operators itself, and checks that each delete matches its new.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t bytes) {
  if (void* const memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  if (void* const memory = lrpc::reserve::all().take(bytes)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  if (lrpc::reserve::all().has(memory)) {
    lrpc::reserve::all().give_back(memory);
  } else {
    std::free(memory);
  }
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto wanted = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(wanted, (bytes + wanted - 1) / wanted * wanted)) return memory;
  if (wanted <= lrpc::reserve::kUnit) {
    if (void* const memory = lrpc::reserve::all().take(bytes)) return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { operator delete(memory); }
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  operator delete(memory);
}

#endif
