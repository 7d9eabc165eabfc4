// One connection: sending and receiving.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "lrpc/netrpc/wire.h"
#include "netrpc/devices/device/internet_address.h"
#include "netrpc/devices/tcp/protocol.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::tcp {
namespace {

/// Slices of a message that one sendmsg(2) sends.
constexpr std::size_t kSlices = 64;
/// What may wait to be sent to a peer: kMostWaiting of the longest messages, or kLeastBytesWaiting if that is more. To
/// all peers together: one kPartOfPool-th of the host's buffers, and to one host its fair share of that. If nothing
/// waits for a peer, one message always may.
constexpr std::size_t kMostWaiting = 4;
constexpr std::size_t kLeastBytesWaiting = 512 * 1024;
constexpr std::size_t kPartOfPool = 4;
/// The most reads from one peer, and records in them, before others have their turn.
constexpr int kReads = 8;
constexpr int kRecords = 32;
constexpr std::size_t kRead = 8 * 1024;
/// Bytes of a read while something waits to be sent: the answers to small calls may be larger than the calls.
constexpr std::size_t kCautiousRead = 2 * 1024;

std::size_t most_waiting(const TcpOptions& options) noexcept {
  return std::max(kMostWaiting * options.longest, kLeastBytesWaiting);
}

}  // namespace

TcpSession::TcpSession(TcpProtocol& protocol, Protocol& high, const ParticipantSet& participants, UniqueFd accepted)
    : Session(protocol, high, participants),
      passive_(static_cast<bool>(accepted)),
      socket_(std::move(accepted)),
      reader_(protocol.options_.longest),
      moved_(protocol.host().now()) {}

TcpProtocol& TcpSession::owner() const noexcept { return static_cast<TcpProtocol&>(protocol()); }

/// Begins to connect; ready() learns whether the peer accepts.
Errc TcpSession::connect() noexcept {
  if (passive_) return Errc::host_unreachable;
  socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return Errc::limit_reached;
  if (owner().bound_.known()) {
    const sockaddr_in own = socket_address(owner().bound_);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
      const bool never = errno == EADDRNOTAVAIL || errno == EACCES;  // this host has no such address
      return end(), never ? Errc::host_unreachable : Errc::limit_reached;
    }
  }
  const sockaddr_in address = socket_address(peer(), participants().remote.port);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    const bool here = errno == EADDRNOTAVAIL || errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS;
    return end(), here ? Errc::limit_reached : Errc::host_unreachable;
  }
  connecting_ = true;
  return owner().watch_new(*this) ? Errc::ok : Errc::limit_reached;
}

Errc TcpSession::push(Message message) noexcept {
  TcpProtocol& all = owner();
  const SessionRef keep(this);  // end() may drop the last other reference
  const std::size_t size = message.size();
  if (size > all.options_.longest) return Errc::message_too_long;
  if (message.pool() == nullptr) message = Message(all.host().pool());
  std::byte* const mark = message.push(kRecordMark);
  if (mark == nullptr) return Errc::limit_reached;
  WireWriter(mark).put(record_mark(size));
  std::array<iovec, kSlices> slices;
  if (message.describe(slices) == 0) return Errc::message_too_long;  // more slices than any protocol makes
  const std::size_t footprint = message.footprint();
  if (!waiting_.empty() && !may_wait(footprint)) {
    if (passive_) end();  // better for the client than an answer that never comes
    return Errc::limit_reached;
  }
  if (!socket_)
    if (const Errc connects = connect(); connects != Errc::ok) return connects;
  if (!attempt([&] { waiting_.push_back({std::move(message), footprint}); })) return Errc::limit_reached;
  footprint_ += footprint;
  ++all.counted.sent;
  const bool first = !connecting_ && waiting_.size() == 1;
  if (first) flush();
  if (waiting_.empty()) return Errc::ok;
  take_share();
  if (first) watch();
  return Errc::ok;
}

bool TcpSession::may_wait(std::size_t footprint) const noexcept {
  TcpProtocol& all = owner();
  return footprint_ + footprint <= most_waiting(all.options_) &&
         all.footprints_.has_room({all.seed_, peer()}, footprint, all.host().pool().limit() / kPartOfPool);
}

/// Counts for the peer's host what the kernel has not taken at once; nothing, without memory.
void TcpSession::take_share() noexcept {
  TcpProtocol& all = owner();
  share_ = footprint_ == 0 ? HostShares::Part() : all.footprints_.take({all.seed_, peer()}, footprint_);
}

Errc TcpSession::control(control::Request& request) noexcept {
  if (control::answered(request, control::Connection{socket_ ? id_ : 0})) return Errc::ok;
  return owner().control(request);
}

bool TcpSession::congested() const noexcept { return passive_ && footprint_ > most_waiting(owner().options_) / 2; }

void TcpSession::ready(std::uint32_t events) noexcept {
  if (connecting_) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return end();
    connecting_ = false;
    moved_ = protocol().host().now();
  }
  const bool input = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  flush();
  if (input && !receiving_) receive();
  if (done(2)) return end();  // of sessions_ and of TcpProtocol::ready()
  // A thread that is receiving watches again later. Until then a connection that has ended would be reported
  // repeatedly.
  if (!input || !receiving_) watch();
}

/// demux() of the protocol above may end the connection and release the monitor; meanwhile no other thread receives
/// here.
void TcpSession::receive() noexcept {
  TcpProtocol& all = owner();
  const std::uint64_t connection = id_;
  std::array<std::byte, kRead> area;
  int records = 0;
  for (int i = 0; i < kReads && records < kRecords && !congested() && id_ == connection && socket_; ++i) {
    const std::size_t most = waiting_.empty() ? kRead : kCautiousRead;
    const ssize_t count = ::recv(socket_.get(), area.data(), most, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count == 0 && passive_ && !half_closed_) {
      half_closed_ = true;
      return;
    }
    if (count <= 0) return end();
    if (waiting_.empty()) moved_ = all.host().now();
    std::span<const std::byte> bytes(area.data(), static_cast<std::size_t>(count));
    while (!bytes.empty() && id_ == connection && socket_) {
      RecordReader::State state = RecordReader::State::wrong;
      attempt([&] { state = reader_.feed(bytes); });
      if (state == RecordReader::State::wrong) return dropped(all.counted.malformed), end();
      if (state == RecordReader::State::more) break;
      Message message = Message::copy_of_long(all.host().pool(), reader_.record());
      if (!message.allocated()) return dropped(all.counted.refused), end();  // so a call that waits for it ends
      ++all.counted.received;
      ++records;
      receiving_ = true;
      high().demux(*this, std::move(message));
      receiving_ = false;
    }
    if (static_cast<std::size_t>(count) < most) return;  // later input is reported
  }
}

void TcpSession::flush() noexcept {
  while (socket_ && !connecting_ && !waiting_.empty()) {
    Message& first = waiting_.front().message;
    std::array<iovec, kSlices> slices{};
    msghdr header{};
    header.msg_iov = slices.data();
    header.msg_iovlen = first.describe(slices);
    const ssize_t count = ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) return end();
    moved_ = protocol().host().now();
    if (static_cast<std::size_t>(count) == first.size()) {
      footprint_ -= waiting_.front().footprint;
      if (share_) take_share();
      waiting_.pop_front();
      continue;
    }
    for (auto sent = static_cast<std::size_t>(count); sent != 0;)
      sent -= first.split(sent).size();  // less, without memory
  }
}

void TcpSession::watch() noexcept {
  if (!socket_) return;
  const bool reads = !receiving_ && !half_closed_ && !congested();
  const std::uint32_t events =
      (reads ? EPOLLIN : 0U) | (connecting_ || !waiting_.empty() ? std::uint32_t{EPOLLOUT} : 0U);
  if (!owner().readiness_->watch_again(socket_.get(), id_, events)) end();
}

void TcpSession::end() noexcept {
  if (!socket_) return;
  TcpProtocol& all = owner();
  if (connecting_ || !waiting_.empty()) ++all.counted.failed;
  socket_ = UniqueFd();
  connecting_ = half_closed_ = false;
  reader_ = RecordReader(all.options_.longest);
  waiting_.clear();
  footprint_ = 0;
  share_ = {};
  all.connections_.unbind(id_);
  if (entry_.empty()) entry_.splice(entry_.begin(), all.connected_, in_list_);
  if (passive_) all.forget(*this);
}

}  // namespace lrpc::netrpc::tcp
