// REQUEST_REPLY's header: the first two words of every Sun RPC message (RFC 5531 §9, struct rpc_msg).
#pragma once

#include <optional>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::request_reply {

/// `lost` is ours and has no body: there will be no reply to the call with this number, because the reply is too long
/// for a link, or because a server that is reached by a connection has no room for the request or the reply.
enum class Type : std::uint32_t { call = 0, reply = 1, lost = 2 };

struct Header {
  static constexpr std::size_t kSize = 8;

  std::uint32_t xid = 0;  ///< The same in a request, its copies and their replies.
  Type type = Type::call;

  void encode(std::byte* to) const noexcept { WireWriter(to).put(xid, static_cast<std::uint32_t>(type)); }
  /// Null: another type.
  [[nodiscard]] static std::optional<Header> decode(const std::byte* from) noexcept {
    WireReader reader(from);
    const auto xid = reader.get<std::uint32_t>();
    const auto type = reader.get<std::uint32_t>();
    if (type > 2) return std::nullopt;
    return Header{xid, static_cast<Type>(type)};
  }
};

}  // namespace lrpc::netrpc::request_reply
