#include "lrpc/detail/shim/call/region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "system/sealed_memory.h"

namespace lrpc::shim {
namespace {

constexpr std::uint64_t kSlotAlignment = 128;  // two lines: the adjacent-line prefetcher must not couple two A-stacks

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

Error over(const char* what, std::uint64_t value, std::uint64_t limit) {
  return {Errc::limit_reached,
          std::string(what) + " is " + std::to_string(value) + ", the limit is " + std::to_string(limit)};
}

}  // namespace

Result<RegionLayout> RegionLayout::of(std::span<const AStackClass> classes, std::uint64_t page) {
  if (page == 0) page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (classes.empty()) return Error{Errc::invalid_argument, "an interface without A-stacks"};
  if (classes.size() > limits::kMaxClasses)
    return over("number of A-stack classes", classes.size(), limits::kMaxClasses);

  RegionLayout layout;
  std::uint64_t offset = 0;
  for (const AStackClass& declared : classes) {
    if (declared.count == 0) return Error{Errc::invalid_argument, "an A-stack class without A-stacks"};
    if (declared.count > limits::kMaxAStacksPerClass)
      return over("number of A-stacks in a class", declared.count, limits::kMaxAStacksPerClass);
    if (declared.image_size > limits::kMaxImageSize)
      return over("A-stack size", declared.image_size, limits::kMaxImageSize);
    if (declared.tail_size > limits::kMaxTailSize)
      return over("out-of-band tail size", declared.tail_size, limits::kMaxTailSize);

    Class placed;
    placed.declared = declared;
    placed.first_astack = layout.astack_count_;
    const std::uint64_t image_end = round_up(sizeof(AStackHead) + declared.image_size, sizeof(AStackLimit));
    placed.slot_stride = static_cast<std::uint32_t>(round_up(image_end + sizeof(AStackLimit), kSlotAlignment));
    placed.slots_offset = offset;
    placed.tail_stride = static_cast<std::uint32_t>(round_up(declared.tail_size, page));
    layout.classes_.push_back(placed);
    layout.astack_count_ += declared.count;
    offset += std::uint64_t{placed.slot_stride} * declared.count;
  }
  // Tails go behind all slots, so that the slots stay contiguous and dense and a tail can be trimmed by whole pages.
  offset = round_up(offset, page);
  for (Class& placed : layout.classes_) {
    placed.tails_offset = offset;
    offset += std::uint64_t{placed.tail_stride} * placed.declared.count;
    if (offset > limits::kMaxRegionSize) return over("region size", offset, limits::kMaxRegionSize);
  }
  layout.size_ = offset;
  return layout;
}

Result<UniqueFd> create_region(const RegionLayout& layout) {
  return create_sealed_memory("lrpc-region", layout.size());
}

Result<Region> Region::map(UniqueFd fd, RegionLayout layout) {
  return map(fd.get(), std::move(layout));  // fd closes here
}

Result<Region> Region::map(int fd, RegionLayout layout) {
  // Checked on the very descriptor that is mapped.
  if (Status good = check_sealed_memory(fd, layout.size(), "the region"); !good) return good.error();
  return map(fd, MAP_SHARED, std::move(layout));
}

Result<Region> Region::private_to_this_domain(RegionLayout layout) {
  return map(-1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, std::move(layout));
}

Result<Region> Region::map(int fd, int flags, RegionLayout layout) {
  void* base = mmap(nullptr, layout.size(), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (base == MAP_FAILED) return system_error("mmap of a region", errno);
  Region region;
  region.base_ = {static_cast<std::byte*>(base), Unmap{layout.size(), this_process()}};
  if (madvise(base, layout.size(), MADV_DONTFORK) != 0) return system_error("madvise(MADV_DONTFORK)", errno);
  region.shared_ = (flags & MAP_SHARED) != 0;
  region.layout_ = std::move(layout);
  return region;
}

void Region::Unmap::operator()(std::byte* base) const noexcept {
  // A fork child never had the mapping (MADV_DONTFORK); by now its own memory may lie there.
  if (owner != this_process()) return;
  // Other threads that map or unmap something wait for a large munmap(2), but not for its pieces.
  constexpr std::uint64_t kPiece = std::uint64_t{2} << 20;
  for (std::uint64_t at = 0; size > kPiece && at < size; at += kPiece)
    (void)madvise(base + at, std::min(kPiece, size - at), MADV_DONTNEED);
  munmap(base, size);
}

AStack Region::astack(std::uint32_t index) const noexcept {
  AStack astack;
  for (std::size_t i = 0; i < layout_.classes().size(); ++i) {
    const RegionLayout::Class& placed = layout_.classes()[i];
    const std::uint32_t within = index - placed.first_astack;
    if (within >= placed.declared.count) continue;
    std::byte* slot = base_.get() + placed.slots_offset + std::uint64_t{placed.slot_stride} * within;
    astack.head = reinterpret_cast<AStackHead*>(slot);
    astack.image = slot + sizeof(AStackHead);
    astack.limit = reinterpret_cast<AStackLimit*>(slot + placed.slot_stride - sizeof(AStackLimit));
    if (placed.tail_stride != 0)
      astack.tail = base_.get() + placed.tails_offset + std::uint64_t{placed.tail_stride} * within;
    astack.astack_class = static_cast<std::uint16_t>(i);
    break;
  }
  return astack;
}

void Region::trim_tail(const AStack& astack) const noexcept {
  if (astack.tail == nullptr) return;
  // MADV_REMOVE punches the hole in the memfd itself: the pages are gone for both mappings.
  const int advice = shared_ ? MADV_REMOVE : MADV_DONTNEED;
  (void)madvise(astack.tail, layout_.classes()[astack.astack_class].tail_stride, advice);
}

}  // namespace lrpc::shim
