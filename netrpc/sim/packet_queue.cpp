#include "netrpc/sim/packet_queue.h"

#include <new>
#include <utility>

namespace lrpc::netrpc {

Packet& PacketQueue::make(std::size_t size) {
  std::uint8_t size_class = 0;
  while (kSizes[size_class] < size) ++size_class;
  if (free_[size_class] == nullptr) {
    const std::size_t stride = sizeof(Packet) + kSizes[size_class];
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(stride * kAtOnce[size_class]));
    for (std::size_t i = 0; i < kAtOnce[size_class]; ++i) {
      auto* const packet = ::new (blocks_.back().get() + i * stride) Packet;
      packet->size_class = size_class;
      free(*packet);
    }
  }
  Packet* const packet = std::exchange(free_[size_class], free_[size_class]->next_free);
  packet->size = static_cast<std::uint32_t>(size);
  packet->next_free = nullptr;
  return *packet;
}

void PacketQueue::free(Packet& packet) noexcept {
  packet.next_free = free_[packet.size_class];
  free_[packet.size_class] = &packet;
}

void PacketQueue::put(Packet& packet, Time due) {
  const Entry entry{due, ++order_, &packet};
  std::size_t slot = heap_.size();
  heap_.push_back(entry);
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 4;
    if (!entry.before(heap_[parent])) break;
    heap_[slot] = heap_[parent];
    slot = parent;
  }
  heap_[slot] = entry;
}

Packet& PacketQueue::take() noexcept {
  Packet& first = *heap_.front().packet;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (heap_.empty()) return first;
  std::size_t slot = 0;
  for (;;) {
    const std::size_t child = slot * 4 + 1;
    if (child >= heap_.size()) break;
    std::size_t least = child;
    for (std::size_t other = child + 1; other < heap_.size() && other < child + 4; ++other)
      if (heap_[other].before(heap_[least])) least = other;
    if (!heap_[least].before(last)) break;
    heap_[slot] = heap_[least];
    slot = least;
  }
  heap_[slot] = last;
  return first;
}

}  // namespace lrpc::netrpc
