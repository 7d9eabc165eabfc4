// SELECT's header (RPC in the x-Kernel, appendix).
#pragma once

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

struct SelectHeader {
  static constexpr std::size_t kSize = 4;
  enum Type : std::uint8_t { kRequest = 1, kReply = 2 };
  enum Status : std::uint8_t {
    kOk = 0,
    kNoSuchCommand = 1,  ///< Nobody serves it at that host.
    kBusy = 2,           ///< Not executed: a limit was reached.
    kFailed = 3,         ///< Executed once or not at all.
    kUnreachable = 4,    ///< Not executed: the host to which the request was to be forwarded cannot be reached.
    kLoop = 5,           ///< Not executed: hosts forward it to each other.
    kLost = 6,           ///< As kFailed: a link could not carry the request or its reply.
  };

  std::uint8_t type = 0;
  std::uint16_t command = 0;
  std::uint8_t status = 0;  ///< In a reply a Status; in a request, by how many hosts it has been forwarded.

  void encode(std::byte* to) const noexcept { WireWriter(to).put(type, command, status); }
  [[nodiscard]] static SelectHeader decode(const std::byte* from) noexcept {
    SelectHeader header;
    WireReader(from).get(header.type, header.command, header.status);
    return header;
  }
};

}  // namespace lrpc::netrpc
