// The floors of the network tables: a bare ping-pong over the same kind of socket, with blocking system calls and
// nothing else.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/address.h"

namespace lrpc::bench {

enum class SocketKind { packet, raw_ip, udp, tcp };
[[nodiscard]] std::string_view name_of(SocketKind kind) noexcept;

/// How many bytes one system call transfers.
struct Pieces {
  std::size_t written = 1400;  ///< At most 70,000. The default is about what the stacks send, which fragment large
                               ///< messages.
  std::size_t read = 70'000;   ///< At most 70,000. A datagram must fit.
};

/// One end of a ping-pong. Must be opened by a thread that is in the end's network namespace; any thread may use it.
class BareSocket {
 public:
  /// `interface` is for packet sockets only. Errors: system_error.
  static Result<BareSocket> open(SocketKind kind, const char* interface, netrpc::HostAddress local,
                                 netrpc::HostAddress peer, const Pieces& pieces = {});
  /// For TCP: accept() waits for the connection, connect() makes it. They do nothing else for the other kinds, except
  /// that connect() sets the receive timeout of once().
  Status accept();
  Status connect();
  /// Answers every message with one byte, until the other end calls stop().
  void echo() noexcept;
  /// Sends `size` bytes (five if `size` is less) and waits for the answer. False after an error, or without an answer
  /// within a second.
  [[nodiscard]] bool once(std::size_t size) noexcept;
  /// Ends echo() at the other end.
  void stop() noexcept;

 private:
  BareSocket(SocketKind kind, UniqueFd fd, const Pieces& pieces)
      : kind_(kind), fd_(std::move(fd)), buffer_(70'000), pieces_(pieces) {}
  [[nodiscard]] bool send(std::size_t size) noexcept;
  /// Receives until it has `size` bytes or a stop. Returns the first byte of the last piece, or -1 after an error.
  [[nodiscard]] int receive(std::size_t size) noexcept;

  SocketKind kind_;
  UniqueFd fd_;
  UniqueFd listener_;
  std::vector<std::byte> buffer_;
  alignas(8) unsigned char peer_[32] = {};
  unsigned peer_size_ = 0;
  std::size_t received_ = 0;  ///< Bytes of the message that the last receive() has taken.
  Pieces pieces_;
};

}  // namespace lrpc::bench
