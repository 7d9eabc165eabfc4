// Pipes and sockets: the request is written to one descriptor, the reply is read from another.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "core/child.h"
#include "lrpc/detail/shim/system/fd.h"
#include "naive.h"

namespace lrpc::bench {
namespace {

bool write_all(int fd, const std::vector<std::byte>& bytes) noexcept {
  return ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}
/// Messages are far below PIPE_BUF, so a pipe hands them over whole, too.
bool read_all(int fd, std::vector<std::byte>& bytes) noexcept {
  return ::read(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

class NaiveStream final : public RoundTrips<NaiveStream> {
 public:
  NaiveStream(UniqueFd client_in, UniqueFd client_out, UniqueFd server_in, UniqueFd server_out, NaiveMessage message)
      : client_in_(std::move(client_in)),
        client_out_(std::move(client_out)),
        server_in_(std::move(server_in)),
        server_out_(std::move(server_out)),
        request_(message.request),
        reply_(message.reply) {}

  Status start(std::string_view name, const Seats& seats) {
    auto server = Child::spawn(name, seats.server, [this] {
      while (read_all(server_in_.get(), request_) && write_all(server_out_.get(), reply_)) {
      }
      return 1;
    });
    if (!server) return server.error();
    server_ = std::move(*server);
    return {};
  }

  void round_trip() noexcept {
    if (!write_all(client_out_.get(), request_) || !read_all(client_in_.get(), reply_)) ++failures_;
  }
  [[nodiscard]] Status health() const override {
    if (failures_ == 0) return {};
    return Error{Errc::peer_gone, "a round trip was cut short"};
  }

 private:
  UniqueFd client_in_;
  UniqueFd client_out_;
  UniqueFd server_in_;
  UniqueFd server_out_;
  std::vector<std::byte> request_;
  std::vector<std::byte> reply_;
  Child server_;
  std::uint64_t failures_ = 0;
};

Result<std::unique_ptr<Contender>> started(std::unique_ptr<NaiveStream> stream, std::string_view name,
                                           const Seats& seats) {
  if (auto status = stream->start(name, seats); !status) return status.error();
  return std::unique_ptr<Contender>(std::move(stream));
}

}  // namespace

Result<std::unique_ptr<Contender>> make_naive_pipe(const Seats& seats, NaiveMessage message) {
  int there[2];
  int back[2];
  if (::pipe2(there, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  UniqueFd server_in(there[0]);
  UniqueFd client_out(there[1]);
  if (::pipe2(back, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  return started(std::make_unique<NaiveStream>(UniqueFd(back[0]), std::move(client_out), std::move(server_in),
                                               UniqueFd(back[1]), message),
                 "naive-pipe", seats);
}

Result<std::unique_ptr<Contender>> make_naive_seqpacket(const Seats& seats, NaiveMessage message) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return system_error("socketpair", errno);
  UniqueFd client(pair[0]);
  UniqueFd server(pair[1]);
  UniqueFd client_again(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
  UniqueFd server_again(::fcntl(server.get(), F_DUPFD_CLOEXEC, 0));
  if (!client_again || !server_again) return system_error("fcntl(F_DUPFD_CLOEXEC)", errno);
  return started(std::make_unique<NaiveStream>(std::move(client), std::move(client_again), std::move(server),
                                               std::move(server_again), message),
                 "naive-seqpacket", seats);
}

}  // namespace lrpc::bench
