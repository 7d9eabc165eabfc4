// The test itself is a private server: it sends its answer before the client asks.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "send_packet.h"

namespace testing_lrpc {

using Packet = std::vector<std::byte>;

inline Packet encoded(const lrpc::shim::BinderMessage& message) {
  auto bytes = lrpc::shim::encode(message);
  if (!bytes) throw std::runtime_error(bytes.error().message());
  return *std::move(bytes);
}

/// The correct answer to an import, without its descriptors: the region and the bell.
inline lrpc::shim::BinderMessage bound_answer(std::span<const lrpc::AStackClass> classes, std::uint32_t request = 1) {
  lrpc::shim::BinderMessage message;
  message.request = request;
  message.body =
      lrpc::shim::Bound{.binding_id = 1, .nonce = {}, .server = {}, .classes = {classes.begin(), classes.end()}};
  return message;
}

/// A socket pair. `packet`, with copies of `fds`, already waits in the first end, over which a client imports. `told`:
/// the kernel knows who has sent it.
inline lrpc::Result<std::pair<lrpc::UniqueFd, lrpc::UniqueFd>> answered_pair(std::span<const std::byte> packet,
                                                                             std::span<const int> fds = {},
                                                                             bool told = true) {
  auto ends = lrpc::shim::make_socket_pair();
  if (!ends) return ends.error();
  const int on = told ? 1 : 0;  // as import_over() does, but before the answer
  if (setsockopt(ends->first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return lrpc::Errc::system_error;
  if (!send_packet(ends->second.get(), packet, fds)) return lrpc::Errc::system_error;
  return *std::move(ends);
}

}  // namespace testing_lrpc
