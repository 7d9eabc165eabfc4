// Room for a layer's header: what it takes of the sizes that the layer below carries, and where it goes in a reply.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/control.h"
#include "lrpc/netrpc/message.h"

namespace lrpc::netrpc {

/// What every protocol carries. A longer message is kept while it is sent: the protocol below may turn out to carry
/// less.
inline constexpr std::size_t kSurelyCarried = 512;

/// For the answer `outcome` of the layer below to `request`, in a layer whose header has `size` bytes: that many fewer
/// are carried. Returns `outcome`.
[[nodiscard]] inline Errc less_header(Errc outcome, control::Request& request, std::size_t size) noexcept {
  if (outcome != Errc::ok) return outcome;
  if (auto* const maximum = std::get_if<control::MaximumMessage>(&request))
    maximum->size -= std::min(maximum->size, size);
  if (auto* const optimum = std::get_if<control::OptimumMessage>(&request))
    optimum->size -= std::min(optimum->size, size);
  return outcome;
}

/// The same for a layer that passes on what it is asked from below, too: what is advertised above has that many more.
[[nodiscard]] inline Errc with_header(Errc outcome, control::Request& request, std::size_t size) noexcept {
  auto* const advertised = outcome == Errc::ok ? std::get_if<control::AdvertisedMaximum>(&request) : nullptr;
  if (advertised != nullptr) advertised->size += size;
  return less_header(outcome, request, size);
}

/// Where the header of a reply is to be written, `size` bytes in front of it. Null: there is no memory, and the reply
/// is empty now. Without its header it says that the call has failed. `pool`: for a reply that has none.
[[nodiscard]] inline std::byte* push_reply_header(Message& reply, BufferPool& pool, std::size_t size) noexcept {
  if (reply.pool() == nullptr) reply = Message(pool);
  std::byte* const to = reply.push(size);
  if (to == nullptr) [[unlikely]]
    reply.clear();
  return to;
}

}  // namespace lrpc::netrpc
