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
/// Messages are far below PIPE_BUF, so that even a pipe transfers each as a whole.
bool read_all(int fd, std::vector<std::byte>& bytes) noexcept {
  return ::read(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

/// What one side reads and writes.
struct Ends {
  UniqueFd in;
  UniqueFd out;
};

class NaiveStream final : public RoundTrips<NaiveStream> {
 public:
  NaiveStream(Ends ends, Child server, NaiveMessage message)
      : ends_(std::move(ends)), request_(message.request), reply_(message.reply), server_(std::move(server)) {}

  void round_trip() noexcept {
    if (!write_all(ends_.out.get(), request_) || !read_all(ends_.in.get(), reply_)) ++failures_;
  }
  [[nodiscard]] Status health() const override {
    if (failures_ == 0) return {};
    return Error{Errc::peer_gone, "a round trip was cut short"};
  }

 private:
  Ends ends_;
  std::vector<std::byte> request_;
  std::vector<std::byte> reply_;
  Child server_;
  std::uint64_t failures_ = 0;
};

Result<std::unique_ptr<Contender>> start(std::string_view name, const Seats& seats, NaiveMessage message, Ends client,
                                         const Ends& server) {
  auto process = Child::spawn(name, seats.server, [&] {
    std::vector<std::byte> request(message.request);
    const std::vector<std::byte> reply(message.reply);
    while (read_all(server.in.get(), request) && write_all(server.out.get(), reply)) {
    }
    return 1;
  });
  if (!process) return process.error();
  return std::unique_ptr<Contender>(new NaiveStream(std::move(client), std::move(*process), message));
}

}  // namespace

Result<std::unique_ptr<Contender>> make_naive_pipe(const Seats& seats, NaiveMessage message) {
  int there[2];
  int back[2];
  if (::pipe2(there, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  UniqueFd server_in(there[0]);
  UniqueFd client_out(there[1]);
  if (::pipe2(back, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  return start("naive-pipe", seats, message, {UniqueFd(back[0]), std::move(client_out)},
               {std::move(server_in), UniqueFd(back[1])});
}

Result<std::unique_ptr<Contender>> make_naive_seqpacket(const Seats& seats, NaiveMessage message) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return system_error("socketpair", errno);
  UniqueFd client(pair[0]);
  UniqueFd server(pair[1]);
  UniqueFd client_again(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
  UniqueFd server_again(::fcntl(server.get(), F_DUPFD_CLOEXEC, 0));
  if (!client_again || !server_again) return system_error("fcntl(F_DUPFD_CLOEXEC)", errno);
  return start("naive-seqpacket", seats, message, {std::move(client), std::move(client_again)},
               {std::move(server), std::move(server_again)});
}

}  // namespace lrpc::bench
