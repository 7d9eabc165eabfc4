// The region of a binding: a sealed memfd with the A-stacks and their tails (LRPC §3.1, §3.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

/// The layout of a region. It is computed from A-stack classes that come from the generated PDL or, validated, over the
/// socket, and never from the region itself. A-stacks are numbered contiguously, class after class.
class RegionLayout {
 public:
  /// Fails with limit_reached or invalid_argument if the classes exceed a limit of lrpc::limits. `page`: bytes of a
  /// page of memory, a power of two; 0: this machine's.
  static Result<RegionLayout> of(std::span<const AStackClass> classes, std::uint64_t page = 0);

  struct Class {
    AStackClass declared;
    std::uint32_t first_astack = 0;  ///< Number of its first A-stack.
    std::uint32_t slot_stride = 0;   ///< Bytes from one slot to the next: a multiple of 128 (no false sharing).
    std::uint64_t slots_offset = 0;  ///< The offset of its first slot.
    std::uint32_t tail_stride = 0;   ///< Bytes from one tail to the next: whole pages of the machine.
    std::uint64_t tails_offset = 0;  ///< The offset of its first tail, after all slots of all classes.
  };

  [[nodiscard]] std::span<const Class> classes() const noexcept { return classes_; }
  [[nodiscard]] std::uint32_t astack_count() const noexcept { return astack_count_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  std::vector<Class> classes_;
  std::uint32_t astack_count_ = 0;
  std::uint64_t size_ = 0;
};

/// One A-stack as a domain sees it. The pointers are valid as long as the Region is mapped.
struct AStack {
  AStackHead* head = nullptr;
  std::byte* image = nullptr;  ///< The class's image_size bytes.
  std::byte* tail = nullptr;   ///< The class's tail_size bytes; null if that is 0.
  AStackLimit* limit = nullptr;
  std::uint16_t astack_class = 0;
};

/// Creates a zeroed region for `layout`: a memfd, not executable, close-on-exec, sealed against changes of its size and
/// its seals. The caller owns the fd, and should close it when it has sent or mapped it.
Result<UniqueFd> create_region(const RegionLayout& layout);

/// A mapping of a region. Owns the mapping, not the fd. A forked child does not inherit it (MADV_DONTFORK). Move-only.
class Region {
 public:
  /// Checks the seals and size of a region fd that another domain has sent, maps the region, and closes the fd: another
  /// process of the same user could otherwise open it through /proc. Fails with bad_message if it is not such a region.
  static Result<Region> map(UniqueFd fd, RegionLayout layout);
  /// The same, but does not close the fd. If this fails, the caller closes an fd from a stranger on another thread: it
  /// may be the last reference to any amount of memory, which takes long to free.
  static Result<Region> map(int fd, RegionLayout layout);

  /// Private memory of this domain with the same A-stacks, for a binding whose server is on another host.
  static Result<Region> private_to_this_domain(RegionLayout layout);

  [[nodiscard]] const RegionLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] bool mapped() const noexcept { return base_ != nullptr; }
  /// A-stack number `index`. Precondition: index < layout().astack_count().
  [[nodiscard]] AStack astack(std::uint32_t index) const noexcept;
  /// Returns the pages of a tail to the system; both sides then read zeros. Either side may call it while it holds the
  /// A-stack.
  void trim_tail(const AStack& astack) const noexcept;

 private:
  struct Unmap {
    std::uint64_t size;
    ProcessNumber owner;  ///< The process that mapped it; in a forked child the addresses are not ours.
    void operator()(std::byte* base) const noexcept;
  };
  static Result<Region> map(int fd, int flags, RegionLayout layout);

  std::unique_ptr<std::byte, Unmap> base_;
  bool shared_ = true;  ///< False: private_to_this_domain().
  RegionLayout layout_;
};

}  // namespace lrpc::shim
