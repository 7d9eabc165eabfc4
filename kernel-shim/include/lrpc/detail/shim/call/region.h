// The pairwise region of a binding: a sealed memfd with the A-stacks and their out-of-band tails (LRPC §3.1, §3.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

/// Where everything lies in a region. Computed from A-stack classes that come from the generated PDL or, validated,
/// over the socket, never out of the region itself. A-stacks are numbered contiguously, class after class.
class RegionLayout {
 public:
  /// Fails with limit_reached or invalid_argument if the classes break a limit of lrpc::limits. `page`: the bytes of a
  /// page of memory, a power of two; 0: this machine's.
  static Result<RegionLayout> of(std::span<const AStackClass> classes, std::uint64_t page = 0);

  struct Class {
    AStackClass declared;
    std::uint32_t first_astack = 0;  ///< Number of its first A-stack.
    std::uint32_t slot_stride = 0;   ///< Bytes from one slot to the next: a multiple of 128 (no false sharing).
    std::uint64_t slots_offset = 0;  ///< Of its first slot.
    std::uint32_t tail_stride = 0;   ///< Bytes from one tail to the next: whole pages of the machine.
    std::uint64_t tails_offset = 0;  ///< Of its first tail, behind all slots of all classes.
  };

  [[nodiscard]] std::span<const Class> classes() const noexcept { return classes_; }
  [[nodiscard]] std::uint32_t astack_count() const noexcept { return astack_count_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  std::vector<Class> classes_;
  std::uint32_t astack_count_ = 0;
  std::uint64_t size_ = 0;
};

/// One A-stack as a domain sees it: its head, its image, its tail. Views into a mapped Region, valid as long as that.
struct AStack {
  AStackHead* head = nullptr;
  std::byte* image = nullptr;  ///< class image_size bytes.
  std::byte* tail = nullptr;   ///< class tail_size bytes; null if the class has none.
  AStackLimit* limit = nullptr;
  std::uint16_t astack_class = 0;
};

/// Creates a zeroed region for `layout`: a memfd, non-executable, close-on-exec, sealed against every change of size
/// and of seals. The caller owns the fd and is to close it once it has handed it out or mapped it.
Result<UniqueFd> create_region(const RegionLayout& layout);

/// A mapping of a region. Owns the mapping, not the fd. Not inherited across fork (MADV_DONTFORK). Move-only.
class Region {
 public:
  /// Checks seals and size of a region fd that another domain sent, maps it, and closes it: another process of the same
  /// user could otherwise open it through /proc. Fails with bad_message if it is not such a region.
  static Result<Region> map(UniqueFd fd, RegionLayout layout);
  /// The same without closing it. Where a stranger has sent it, the caller closes it on another thread if this fails:
  /// it may be the last of any amount of memory.
  static Result<Region> map(int fd, RegionLayout layout);

  /// Anonymous memory of this domain alone, with the same A-stacks: for a binding whose server is on another host.
  static Result<Region> private_to_this_domain(RegionLayout layout);

  Region() noexcept = default;
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  [[nodiscard]] const RegionLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] bool mapped() const noexcept { return base_ != nullptr; }
  /// A-stack number `index`. Precondition: index < layout().astack_count().
  [[nodiscard]] AStack astack(std::uint32_t index) const noexcept;
  /// Gives the pages of a tail back to the system (both sides then read zeros). May be called by either side when the
  /// A-stack is its own.
  void trim_tail(const AStack& astack) const noexcept;

 private:
  static Result<Region> map(int fd, int flags, RegionLayout layout);
  void unmap() noexcept;

  std::byte* base_ = nullptr;
  ProcessNumber owner_ = 0;  ///< The process that mapped it; in a fork child the addresses belong to somebody else.
  bool shared_ = true;       ///< False: private_to_this_domain().
  RegionLayout layout_;
};

}  // namespace lrpc::shim
