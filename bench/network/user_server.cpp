#include "user_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "calls/helper.h"

namespace lrpc::bench {

Result<std::unique_ptr<UserServer>> UserServer::start(netuser::UserObject& user) {
  std::unique_ptr<UserServer> made(new UserServer);
  auto helper = helper_path("lrpc-bench-user");
  if (!helper) return helper.error();
  auto sockets = make_socket_pair();
  if (!sockets) return sockets.error();
  if (Status served = made->served_.serve_over(user, std::move(sockets->first)); !served) return served.error();
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  const UniqueFd out(ready[0]);
  UniqueFd in(ready[1]);
  const int socket = sockets->second.get();
  const char* const program = helper->c_str();
  const std::string number = std::to_string(socket);
  made->pid_ = ::fork();
  if (made->pid_ < 0) return system_error("fork", errno);
  if (made->pid_ == 0) {  // only async-signal-safe calls from here on
    ::fcntl(socket, F_SETFD, 0);
    ::dup2(in.get(), STDOUT_FILENO);
    ::execl(program, program, number.c_str(), nullptr);
    ::_exit(127);
  }
  in = {};
  char byte = 0;
  if (::read(out.get(), &byte, 1) != 1) return Error{Errc::peer_gone, "lrpc-bench-user does not serve"};
  return made;
}

UserServer::~UserServer() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace lrpc::bench
