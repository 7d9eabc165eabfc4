// What is under way on the simulated wires: packets, ordered by the moment at which they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc {

class PacketQueue;

/// Bytes on a wire: a copy of what was sent, so that no two hosts ever see the same memory.
struct alignas(8) Packet {
  std::uint32_t size = 0;
  std::uint32_t from = 0;   ///< Index of the host that sent it.
  std::uint32_t to = 0;     ///< Index of the host that it will reach.
  std::uint8_t medium = 0;  ///< Which of the host's devices: see Medium in world.h.
  std::uint8_t size_class = 0;
  std::uint64_t number = 0;  ///< Of the packet in this world; a duplicate has its own.
  Packet* next_free = nullptr;
  [[nodiscard]] std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// A heap of packets with the memory they lie in, which is kept: in the steady state a packet allocates nothing.
/// Packets that are due at the same time leave in the order in which they were put in.
class PacketQueue {
 public:
  PacketQueue() { heap_.reserve(1024); }
  PacketQueue(const PacketQueue&) = delete;
  PacketQueue& operator=(const PacketQueue&) = delete;

  /// A packet with room for `size` bytes (at most 65535), not in the queue. The caller's until put() or free().
  [[nodiscard]] Packet& make(std::size_t size);
  void free(Packet& packet) noexcept { packet.next_free = std::exchange(free_[packet.size_class], &packet); }
  void put(Packet& packet, Time due);

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  /// When the first one arrives. Precondition: not empty().
  [[nodiscard]] Time next_due() const noexcept { return heap_.front().due; }
  /// Takes the first one out. Precondition: not empty().
  [[nodiscard]] Packet& take() noexcept;

 private:
  struct Entry {
    Time due{};
    std::uint64_t order = 0;
    Packet* packet = nullptr;
    [[nodiscard]] bool operator>(const Entry& other) const noexcept {
      return due != other.due ? due > other.due : order > other.order;
    }
  };
  static constexpr std::size_t kSizes[] = {256, 2048, 65536};
  static constexpr std::size_t kAtOnce[] = {64, 32, 4};  ///< Packets that are made together.

  std::vector<Entry> heap_;  ///< The first one is due first.
  std::uint64_t order_ = 0;
  Packet* free_[3] = {};
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace lrpc::netrpc
