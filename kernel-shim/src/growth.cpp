#include "lrpc/shim/growth.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "lrpc/shim/bell.h"
#include "lrpc/shim/binder_protocol.h"
#include "lrpc/shim/little_endian.h"

namespace lrpc::shim {
namespace {

enum class Kind : std::uint8_t { request = 1, answer = 2 };
constexpr std::size_t kLongest = 8;  // one more than either has, so that a longer one is seen
/// One more descriptor than we want, so that a second one is seen and closed.
constexpr std::size_t kMostFds = 2;
union Control {
  char bytes[CMSG_SPACE(kMostFds * sizeof(int))];
  cmsghdr align;
};

std::string encode(const GrowthRequest& request) {
  std::string bytes;
  append_number(bytes, static_cast<std::uint8_t>(Kind::request));
  append_number(bytes, request.astack_class);
  append_number(bytes, request.place);
  append_number(bytes, request.count);
  return bytes;
}

std::string encode_answer(std::uint16_t count, Errc refusal) {
  std::string bytes;
  append_number(bytes, static_cast<std::uint8_t>(Kind::answer));
  append_number(bytes, count);
  append_number(bytes, static_cast<std::uint16_t>(refusal));
  return bytes;
}

Status send_on_line(int line, const std::string& bytes, int fd) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  for (;;) {
    if (sendmsg(line, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return Error{Errc::peer_gone, "the line has hung up"};
    return system_error("a message on a line", errno);
  }
}

/// What a line brought: a private copy.
struct Received {
  std::array<std::byte, kLongest> bytes{};
  std::size_t size = 0;
  std::array<UniqueFd, kMostFds> fds;
  std::size_t fd_count = 0;
  bool fds_lost = false;
};

/// nullopt: nothing is there.
Result<std::optional<Received>> receive_on_line(int line) {
  Received received;
  iovec data{received.bytes.data(), received.bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  const ssize_t got = recvmsg(line, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::optional<Received>();
    return Error{Errc::peer_gone, "the line is broken"};
  }
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN((at + 1) * sizeof(int)) <= one->cmsg_len && received.fd_count < kMostFds; ++at) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + at * sizeof fd, sizeof fd);
      received.fds[received.fd_count++] = UniqueFd(fd);
    }
  }
  if (got == 0 && received.fd_count == 0) return Error{Errc::peer_gone, "the line has hung up"};
  received.size = static_cast<std::size_t>(got);
  received.fds_lost = (header.msg_flags & MSG_CTRUNC) != 0;
  return std::optional<Received>(std::move(received));
}

}  // namespace

Result<UniqueFd> ask_for_growth(int bell, const GrowthRequest& request) {
  auto ends = make_socket_pair();
  if (!ends) return ends.error();
  if (Status written = send_on_line(ends->first.get(), encode(request), -1); !written) return written.error();
  const Status asked = offer_on_bell(bell, BellMessage::grow, ends->second.get(), std::chrono::milliseconds(0));
  if (!asked) return asked.error();
  return std::move(ends->first);
}

Result<std::optional<GrowthAnswer>> receive_growth(int line, std::chrono::milliseconds patience) {
  pollfd entry{line, POLLIN, 0};
  if (poll(&entry, 1, static_cast<int>(patience.count())) <= 0) return std::optional<GrowthAnswer>();
  auto received = receive_on_line(line);
  if (!received) return received.error();
  if (!received->has_value()) return std::optional<GrowthAnswer>();
  ByteReader bytes(std::span<const std::byte>((*received)->bytes).first((*received)->size));
  GrowthAnswer answer;
  bytes.check(bytes.number<std::uint8_t>() == static_cast<std::uint8_t>(Kind::answer));
  answer.count = bytes.number<std::uint16_t>();
  answer.refusal = static_cast<Errc>(bytes.number<std::uint16_t>());
  bytes.check((answer.count == 0) == (answer.refusal != Errc::ok));
  if (!bytes.done()) return Error{Errc::bad_message, "not an answer to a request for A-stacks"};
  if ((*received)->fds_lost) return Error{Errc::limit_reached, "out of descriptors: a secondary region needs two"};
  if ((*received)->fd_count != (answer.count == 0 ? 0U : 1U)) {
    return Error{Errc::bad_message, "a secondary region is one descriptor"};
  }
  answer.region = std::move((*received)->fds[0]);
  return std::optional<GrowthAnswer>(std::move(answer));
}

Result<GrowthRequest> take_growth_request(int line) {
  auto received = receive_on_line(line);
  if (!received) return received.error();
  if (!received->has_value()) return Error{Errc::bad_message, "a line without a request"};
  ByteReader bytes(std::span<const std::byte>((*received)->bytes).first((*received)->size));
  GrowthRequest request;
  bytes.check(bytes.number<std::uint8_t>() == static_cast<std::uint8_t>(Kind::request));
  request.astack_class = bytes.number<std::uint16_t>();
  request.place = bytes.number<std::uint16_t>();
  request.count = bytes.number<std::uint16_t>();
  bytes.check(request.count != 0 && request.place < kMostSecondaryRegions && (*received)->fd_count == 0);
  if (!bytes.done()) return Error{Errc::bad_message, "not a request for A-stacks"};
  return request;
}

Status grant_growth(int line, std::uint16_t count, int region) {
  return send_on_line(line, encode_answer(count, Errc::ok), region);
}

void refuse_growth(int line, Errc why) noexcept { (void)send_on_line(line, encode_answer(0, why), -1); }

AStackClass class_that_fits(AStackClass declared, std::uint16_t count, std::uint64_t most_bytes) {
  declared.count = std::min(count, kMostAStacksInSecondary);
  for (; declared.count != 0; declared.count = static_cast<std::uint16_t>(declared.count / 2)) {
    const auto layout = RegionLayout::of({&declared, 1});
    if (layout && layout->size() <= most_bytes) break;
  }
  return declared;
}

}  // namespace lrpc::shim
