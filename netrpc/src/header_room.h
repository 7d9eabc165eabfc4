// A layer's header: how much smaller it makes the sizes that the layer below carries, how it is put in front of a
// message and taken off, and where it is written in a reply.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/control.h"
#include "lrpc/netrpc/message.h"

namespace lrpc::netrpc {

/// The size that every protocol carries. A layer that sends a longer message keeps a copy meanwhile: the protocol below
/// may refuse it as too long.
inline constexpr std::size_t kSurelyCarried = 512;

/// Subtracts a header of `size` bytes from the sizes that the layer below has written into `request`, and leaves at
/// most `most`. `outcome`: that layer's answer, which is returned.
[[nodiscard]] inline Errc less_header(Errc outcome, control::Request& request, std::size_t size,
                                      std::size_t most = ~std::size_t{0}) noexcept {
  if (outcome != Errc::ok) return outcome;
  const auto reduce = [=](std::size_t& carried) { carried = std::min(carried - std::min(carried, size), most); };
  if (auto* const maximum = std::get_if<control::MaximumMessage>(&request)) reduce(maximum->size);
  if (auto* const optimum = std::get_if<control::OptimumMessage>(&request)) reduce(optimum->size);
  return outcome;
}

/// The same for a layer that also passes on requests from below: adds the header to an AdvertisedMaximum of the
/// protocol above.
[[nodiscard]] inline Errc with_header(Errc outcome, control::Request& request, std::size_t size) noexcept {
  auto* const advertised = outcome == Errc::ok ? std::get_if<control::AdvertisedMaximum>(&request) : nullptr;
  if (advertised != nullptr) advertised->size += size;
  return less_header(outcome, request, size);
}

/// Puts `header` in front of `message`. False: there is no memory, and the message is unchanged.
template <class Header>
[[nodiscard]] bool push_header(const Header& header, Message& message) noexcept {
  std::byte* const to = message.push(Header::kSize);
  if (to == nullptr) [[unlikely]]
    return false;
  header.encode(to);
  return true;
}

/// Takes a header off the front of `message`. Null: the message is shorter, and unchanged, or Header::decode() has
/// found the header wrong.
template <class Header>
[[nodiscard]] std::optional<Header> pop_header(Message& message) noexcept {
  Message::Header<Header::kSize> raw;
  message.pop(raw);
  return raw ? std::optional<Header>(Header::decode(raw.bytes)) : std::nullopt;
}

/// Makes room for a header of `size` bytes in front of a reply, and returns where to write it. Null: there is no
/// memory, and the reply is now empty; without its header it tells the client that the call has failed. `pool`: for a
/// reply that has none.
[[nodiscard]] inline std::byte* push_reply_header(Message& reply, BufferPool& pool, std::size_t size) noexcept {
  if (reply.pool() == nullptr) reply = Message(pool);
  std::byte* const to = reply.push(size);
  if (to == nullptr) [[unlikely]]
    reply.clear();
  return to;
}

}  // namespace lrpc::netrpc
