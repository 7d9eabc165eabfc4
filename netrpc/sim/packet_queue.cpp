#include "netrpc/sim/packet_queue.h"

#include <algorithm>
#include <functional>
#include <new>

namespace lrpc::netrpc {

Packet& PacketQueue::make(std::size_t size) {
  std::uint8_t size_class = 0;
  while (kSizes[size_class] < size) ++size_class;
  if (free_[size_class] == nullptr) {
    const std::size_t stride = sizeof(Packet) + kSizes[size_class];
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(stride * kAtOnce[size_class]));
    for (std::size_t i = 0; i < kAtOnce[size_class]; ++i)
      free(*::new (blocks_.back().get() + i * stride) Packet{.size_class = size_class});
  }
  Packet* const packet = std::exchange(free_[size_class], free_[size_class]->next_free);
  packet->size = static_cast<std::uint32_t>(size);
  return *packet;
}

void PacketQueue::put(Packet& packet, Time due) {
  heap_.push_back({due, ++order_, &packet});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

Packet& PacketQueue::take() noexcept {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  Packet& first = *heap_.back().packet;
  heap_.pop_back();
  return first;
}

}  // namespace lrpc::netrpc
