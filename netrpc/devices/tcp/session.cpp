// One connection: what is sent and received.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "lrpc/netrpc/wire.h"
#include "netrpc/devices/tcp/protocol.h"

namespace lrpc::netrpc::tcp {
namespace {

/// Of a message that the kernel takes at one time.
constexpr std::size_t kSlices = 64;
/// What may wait to be sent to a peer, in messages of the longest.
constexpr std::size_t kMostWaiting = 4;
/// Reads of one peer before the others have their turn.
constexpr int kReads = 4;
constexpr std::size_t kRead = 16 * 1024;

}  // namespace

TcpSession::TcpSession(TcpProtocol& protocol, Protocol& high, const ParticipantSet& participants, UniqueFd accepted)
    : Session(protocol, high, participants),
      passive_(static_cast<bool>(accepted)),
      socket_(std::move(accepted)),
      reader_(protocol.options_.longest),
      moved_(protocol.host().now()) {}

TcpSession::~TcpSession() { end(); }

TcpProtocol& TcpSession::owner() const noexcept { return static_cast<TcpProtocol&>(protocol()); }

/// It is known later whether the peer accepts.
bool TcpSession::connect() noexcept {
  if (passive_) return false;
  socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return false;
  const int yes = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (owner().bound_.known()) {
    address.sin_addr.s_addr = htonl(owner().bound_.value);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return end(), false;
  }
  address.sin_port = htons(participants().remote.port);
  address.sin_addr.s_addr = htonl(peer().value);
  const int done = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (done != 0 && errno != EINPROGRESS) return end(), false;
  connecting_ = true;
  return owner().watch_new(*this);
}

Errc TcpSession::push(Message message) noexcept {
  TcpProtocol& all = owner();
  const SessionRef keep(this);  // one that ends may be nobody's
  if (message.size() > all.options_.longest) return Errc::message_too_long;
  if (waiting_bytes_ + message.size() > kMostWaiting * (all.options_.longest + kRecordMark)) return Errc::limit_reached;
  const std::size_t size = message.size();
  if (message.pool() == nullptr) message = Message(all.host().pool());
  std::byte* const mark = message.push(kRecordMark);
  if (mark == nullptr) return Errc::limit_reached;
  WireWriter(mark).put(record_mark(size));
  if (!socket_ && !connect()) return Errc::host_unreachable;
  try {
    waiting_.push_back(std::move(message));
  } catch (const std::bad_alloc&) {
    return Errc::limit_reached;
  }
  waiting_bytes_ += size + kRecordMark;
  ++all.counted.sent;
  if (!connecting_ && waiting_.size() == 1) {
    flush();
    if (!waiting_.empty()) watch();
  }
  return Errc::ok;
}

Errc TcpSession::control(control::Request& request) noexcept { return owner().control(request); }

void TcpSession::ready(std::uint32_t events) noexcept {
  if (connecting_) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return end();
    connecting_ = false;
    moved_ = protocol().host().now();
  }
  const bool input = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  if (input && !receiving_) receive();
  flush();
  // Who is receiving watches again. Until then a connection that has ended would be reported over and over.
  if (!input || !receiving_) watch();
}

/// What is called upwards may end the connection, and let the monitor go: meanwhile nobody else receives here.
void TcpSession::receive() noexcept {
  TcpProtocol& all = owner();
  const std::uint64_t connection = id_;
  std::array<std::byte, kRead> area;
  for (int i = 0; i < kReads && id_ == connection && socket_; ++i) {
    const ssize_t count = ::recv(socket_.get(), area.data(), area.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return end();
    moved_ = all.host().now();
    std::span<const std::byte> bytes(area.data(), static_cast<std::size_t>(count));
    while (!bytes.empty() && id_ == connection && socket_) {
      RecordReader::State state = RecordReader::State::wrong;
      try {
        state = reader_.feed(bytes);
      } catch (const std::bad_alloc&) {
      }
      if (state == RecordReader::State::wrong) {
        ++all.counted.malformed;
        return end();
      }
      if (state == RecordReader::State::more) break;
      Message message = Message::copy_of_long(all.host().pool(), reader_.record());
      if (!message.allocated()) {
        ++all.counted.refused;
        continue;
      }
      ++all.counted.received;
      receiving_ = true;
      high().demux(*this, std::move(message));
      receiving_ = false;
    }
  }
}

void TcpSession::flush() noexcept {
  while (socket_ && !connecting_ && !waiting_.empty()) {
    Message& first = waiting_.front();
    std::array<iovec, kSlices> slices{};
    msghdr header{};
    header.msg_iov = slices.data();
    header.msg_iovlen = first.describe(slices);
    if (header.msg_iovlen == 0) return end();  // in more pieces than any that we make
    const ssize_t count = ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) return end();
    moved_ = protocol().host().now();
    waiting_bytes_ -= static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) == first.size()) {
      waiting_.pop_front();
    } else {
      (void)first.split(static_cast<std::size_t>(count));
    }
  }
}

void TcpSession::watch() noexcept {
  if (!socket_) return;
  const std::uint32_t events =
      (receiving_ ? 0U : EPOLLIN) | (connecting_ || !waiting_.empty() ? std::uint32_t{EPOLLOUT} : 0U);
  if (!owner().readiness_->watch_again(socket_.get(), id_, events)) end();
}

void TcpSession::end() noexcept {
  if (!socket_) return;
  TcpProtocol& all = owner();
  if (connecting_ || !waiting_.empty()) ++all.counted.failed;
  socket_ = UniqueFd();
  connecting_ = false;
  reader_ = RecordReader(all.options_.longest);
  waiting_.clear();
  waiting_bytes_ = 0;
  all.connections_.unbind({id_});
  if (passive_) all.forget(*this);
}

}  // namespace lrpc::netrpc::tcp
