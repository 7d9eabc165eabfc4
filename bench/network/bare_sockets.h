// The floors of the network tables: a bare ping-pong over the same kind of socket, blocking system calls, nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/address.h"

namespace lrpc::bench {

enum class SocketKind { packet, raw_ip, udp, tcp };
[[nodiscard]] std::string_view name_of(SocketKind kind) noexcept;

/// How much goes in one system call.
struct Pieces {
  std::size_t written = 1400;  ///< At most 70,000. By default as the stacks do, which cut large messages.
  std::size_t read = 70'000;   ///< At most that. Datagrams must fit.
};

/// One end of a ping-pong. Opened by a thread that is in the end's network namespace; used by any.
class BareSocket {
 public:
  /// `interface`: for packet sockets. Errors: system_error.
  static Result<BareSocket> open(SocketKind kind, const char* interface, netrpc::HostAddress local,
                                 netrpc::HostAddress peer, const Pieces& pieces = {});
  /// TCP: waits for the connection, or makes it. No effect for the others.
  Status accept();
  Status connect();
  /// Answers every message with one byte, until stop() is called at the client.
  void echo() noexcept;
  /// Sends `size` bytes (at least one) and waits for the answer. False: an error, or no answer for a second.
  [[nodiscard]] bool once(std::size_t size) noexcept;
  /// Ends echo() at the other end.
  void stop() noexcept;

 private:
  BareSocket(SocketKind kind, UniqueFd fd, const Pieces& pieces)
      : kind_(kind), fd_(std::move(fd)), buffer_(70'000), pieces_(pieces) {}
  [[nodiscard]] bool send(std::size_t size) noexcept;
  /// Returns the first byte of the data, or -1. For TCP, `size` bytes are expected.
  [[nodiscard]] int receive(std::size_t size) noexcept;

  SocketKind kind_;
  UniqueFd fd_;
  UniqueFd listener_;
  std::vector<std::byte> buffer_;
  alignas(8) unsigned char peer_[32] = {};
  unsigned peer_size_ = 0;
  std::size_t received_ = 0;  ///< By the last receive(), of the message.
  Pieces pieces_;
};

}  // namespace lrpc::bench
