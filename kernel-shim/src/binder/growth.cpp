#include "lrpc/detail/shim/binder/growth.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "lrpc/detail/shim/system/little_endian.h"
#include "small_message.h"

namespace lrpc::shim {
namespace {

enum class Kind : std::uint8_t { request = 1, answer = 2 };

/// Sends a message of these numbers, too few for std::string to allocate.
ssize_t send_on_line(int line, std::span<const int> fds, Kind kind, auto... numbers) noexcept {
  std::string bytes;
  append_numbers(bytes, static_cast<std::uint8_t>(kind), static_cast<std::uint16_t>(numbers)...);
  return send_packet(line, std::as_bytes(std::span(bytes)), fds, MSG_DONTWAIT);
}

Status sent(ssize_t bytes) {
  if (bytes >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET) return Error{Errc::peer_gone, "the line has hung up"};
  return system_error("a message on a line", errno);
}

}  // namespace

Result<UniqueFd> ask_for_growth(int bell, const GrowthRequest& request) {
  auto ends = make_socket_pair();
  if (!ends) return ends.error();
  const Status written =
      sent(send_on_line(ends->first.get(), {}, Kind::request, request.astack_class, request.place, request.count));
  if (!written) return written.error();
  const Status asked = offer_on_bell(bell, BellMessage::grow, ends->second.get(), std::chrono::milliseconds(0));
  if (!asked) return asked.error();
  return std::move(ends->first);
}

Result<std::optional<GrowthAnswer>> receive_growth(int line, std::chrono::milliseconds patience,
                                                   const Stranger& server) {
  pollfd entry{line, POLLIN, 0};
  if (poll(&entry, 1, static_cast<int>(patience.count())) <= 0) return std::optional<GrowthAnswer>();
  auto received = receive_small(line, "line", PeerSocket::Made::here, server);
  if (!received) return received.error();
  if (!received->has_value()) return std::optional<GrowthAnswer>();
  SmallMessage& came = **received;
  // A region is a memfd. A socket must be closed as a PeerSocket.
  const bool is_socket = came.fd && is_socket_pair_end(came.fd.get());
  if (is_socket) PeerSocket(std::move(came.fd), PeerSocket::Made::by_peer, server).reset();
  ClosedAside region(std::move(came.fd), server);  // closed aside if it is refused: freeing it may take long
  ByteReader bytes(came.contents());
  GrowthAnswer answer;
  bytes.check(bytes.number<std::uint8_t>() == static_cast<std::uint8_t>(Kind::answer));
  answer.count = bytes.number<std::uint16_t>();
  answer.refusal = static_cast<Errc>(bytes.number<std::uint16_t>());
  bytes.check((answer.count == 0) == (answer.refusal != Errc::ok));
  if (!bytes.done()) return Error{Errc::bad_message, "not an answer to a request for A-stacks"};
  if (came.fds_lost) return Error{Errc::limit_reached, "out of descriptors: a secondary region needs two"};
  if (came.fds_refused || is_socket || static_cast<bool>(region) != (answer.count != 0))
    return Error{Errc::bad_message, "a secondary region is one descriptor"};
  answer.region = std::move(region);
  return std::optional<GrowthAnswer>(std::move(answer));
}

Result<GrowthRequest> take_growth_request(int line, const Stranger& client) {
  auto received = receive_small(line, "line", PeerSocket::Made::by_peer, client);
  if (!received) return received.error();
  if (!received->has_value()) return Error{Errc::bad_message, "a line without a request"};
  SmallMessage& came = **received;
  const bool attached = came.fd || came.fds_refused || came.fds_lost;
  PeerSocket(std::move(came.fd), PeerSocket::Made::by_peer, client).reset();
  ByteReader bytes(came.contents());
  GrowthRequest request;
  bytes.check(bytes.number<std::uint8_t>() == static_cast<std::uint8_t>(Kind::request));
  request.astack_class = bytes.number<std::uint16_t>();
  request.place = bytes.number<std::uint16_t>();
  request.count = bytes.number<std::uint16_t>();
  bytes.check(request.count != 0 && request.place < kMostSecondaryRegions && !attached);
  if (!bytes.done()) return Error{Errc::bad_message, "not a request for A-stacks"};
  return request;
}

Status grant_growth(int line, std::uint16_t count, int region) {
  return sent(send_on_line(line, {&region, 1}, Kind::answer, count, Errc::ok));
}

void refuse_growth(int line, Errc why) noexcept { (void)send_on_line(line, {}, Kind::answer, 0, why); }

AStackClass class_that_fits(AStackClass declared, std::uint16_t count, std::uint64_t most_bytes) {
  declared.count = std::min(count, kMostAStacksInSecondary);
  for (; declared.count != 0; declared.count = static_cast<std::uint16_t>(declared.count / 2)) {
    const auto layout = RegionLayout::of({&declared, 1});
    if (layout && layout->size() <= most_bytes) break;
  }
  return declared;
}

}  // namespace lrpc::shim
