#include "launcher.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "environment.h"
#include "filter.h"
#include "lrpc/detail/shim/binder/ask_nameserver.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/trap/trap.h"
#include "lrpc/raw_binding.h"
#include "program.h"

namespace lrpc::sealed {
namespace {

using std::chrono::milliseconds;

/// How long the nameserver or the clerk may take to answer.
constexpr milliseconds kAnswerTime{10'000};
/// Interval at which a name that does not exist yet is looked up again.
constexpr milliseconds kPause{50};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (const std::string& one : strings) all.push_back(const_cast<char*>(one.c_str()));  // NOLINT: exec takes it so
  all.push_back(nullptr);
  return all;
}

/// Whether `err`, from sendmsg(2), means that the other end of the socket is closed.
bool is_closed(int err) { return err == EPIPE || err == ECONNRESET; }

/// Why the child could not send the offer on the bell, the first of its last two calls.
Error why_not_offered(int err) {
  if (err == EAGAIN) return {Errc::timed_out, "the server does not look at the bell: it is full"};
  if (is_closed(err)) return {Errc::peer_gone, "the server has let go of the binding"};
  return system_error("an offer on the bell", err);
}

}  // namespace

Launcher::Launcher(std::vector<std::string> arguments, SealedOptions options)
    : arguments_(std::move(arguments)),
      options_(std::move(options)),
      server_(options_.socket ? shim::stranger_at(options_.socket.get()) : shim::Stranger{}),
      socket_(std::move(options_.socket), server_) {}

Status Launcher::prepare() {
  if (arguments_.empty()) return Error{Errc::invalid_argument, "which program is to be started sealed?"};
  if (!shim::valid_name(options_.name))
    return Error{Errc::invalid_argument, "'" + options_.name + "' is not a name that a sealed program could import"};
  if (socket_ && options_.pdl == nullptr) {
    return Error{Errc::invalid_argument,
                 "a private binding has no nameserver to ask for the interface: set SealedOptions::pdl"};
  }
  if (Status sound = shim::check_wait("SealedOptions::timeout", options_.timeout); !sound) return sound;
  if (socket_) {
    const auto early = shim::ask_for_senders(socket_.get());
    if (!early) return early.error();
    early_ = *early != 0;
  }
  auto variables = environment_of_program(environ, options_.environment);
  if (!variables) return variables.error();
  variables_ = *std::move(variables);
  auto program = open_program(arguments_.front());
  if (!program) return program.error();
  program_ = *std::move(program);
  auto filter = make_filter(Refuse::trace, options_.allow);
  if (!filter) return filter.error();
  wait_ = shim::Wait(options_.timeout);
  if (Status found = find_interface(); !found) return found;

  request_.gate = shim::Gate::trap;
  if (Status made = make_request(); !made) return made;
  plan_.launcher = getpid();
  plan_.program = program_.get();
  plan_.socket = socket_.get();
  plan_.nameservers = shim::nameserver_sockets(options_.nameserver);
  plan_.filter = *std::move(filter);
  plan_.arguments = pointers(arguments_);
  plan_.environment = pointers(variables_);
  pthread_sigmask(SIG_SETMASK, nullptr, &plan_.mask);
  return {};
}

/// An import must name the interface. `lrpc run` does not know it, so ask the nameserver.
Status Launcher::find_interface() {
  request_.name = options_.name;
  if (options_.pdl != nullptr) {
    request_.interface = shim::OwnedInterfaceId::of(options_.pdl->interface);
    return {};
  }
  auto settled = shim::settled_nameserver(options_.nameserver);  // each question connects to it anew
  if (!settled) return settled.error();
  options_.nameserver = *std::move(settled);
  for (;;) {
    auto described = client::RawBinding::describe(options_.name, {.nameserver = options_.nameserver});
    const bool not_reached = described.code() == Errc::no_nameserver || described.code() == Errc::system_error;
    nameserver_seen_ |= !not_reached;
    if (described) {
      request_.interface = std::move(described->interface);
      return {};
    }
    // A nameserver that was there before may be restarting, or descriptors or memory may lack now to connect to it.
    const bool may_come = described.code() == Errc::name_unknown || described.code() == Errc::peer_gone ||
                          (not_reached && nameserver_seen_);
    if (!may_come || wait_.left() == kDoNotWait) return described.error();
    std::this_thread::sleep_for(kPause);
  }
}

/// Makes the request that the child sends, and the control sockets between child and launcher; anew for each child.
Status Launcher::make_request() {
  request_.timeout_ms = shim::ImportRequest::wire_timeout(wait_.left());
  shim::ImportRequest wire = request_;
  if (socket_) wire.name.clear();  // a private binding has no name; the server need not learn what the program calls it
  auto request = shim::encode({.request = 1, .body = wire, .fds = {}});
  if (!request) return request.error();
  auto control = shim::make_socket_pair();
  if (!control) return control.error();
  control_ = std::move(control->first);
  childs_control_ = std::move(control->second);
  plan_.control = childs_control_.get();
  plan_.request = *std::move(request);
  return {};
}

/// Without waiting for a full queue.
Result<UniqueFd> Launcher::connect() const {
  std::vector<std::string> sockets = plan_.nameservers;
  return shim::connect_first_of(sockets, false);
}

/// Waits for a nameserver that is being restarted. False: options.timeout is over.
bool Launcher::nameserver_comes_back() const {
  while (!(wait_.left() == kDoNotWait)) {
    std::this_thread::sleep_for(std::min(kPause, wait_.left()));
    if (connect().code() != Errc::no_nameserver) return true;
  }
  return false;
}

Status Launcher::start() try {
  Status done = begin();
  // B18, as in an import that waits for a name: the servers export their names again at the restarted nameserver.
  while (!done && nameserver_lost_) {
    end_child();
    if (!nameserver_comes_back()) return done;
    if (Status made = make_request(); !made) return made;
    done = begin();
  }
  if (!done) end_child();
  return done;
} catch (...) {
  end_child();
  throw;
}

Status Launcher::begin() {
  nameserver_lost_ = false;
  if (Status forked = fork_child(); !forked) return forked;
  if (Status introduced = introduce(); !introduced) return introduced;
  const bool started = supervisor_->wait_for_start();
  // Only now: the child has closed its copy of a private server's socket, and that was not the last one. What lies in
  // the socket may be slow to close.
  plan_.socket = -1;
  socket_.reset();
  program_.reset();
  if (started) return {};
  pid_ = -1;  // it has been reaped
  return why_not_started();
}

/// By the pidfd, so that nothing happens to a process that has got the child's number because others have reaped the
/// child. By the number only where there was no descriptor for a pidfd.
void Launcher::end_child() noexcept {
  if (pid_ <= 0) return;
  constexpr auto kPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which glibc has from 2.36 on
  const idtype_t kind = pidfd_ ? kPidfd : P_PID;
  const auto child = static_cast<id_t>(pidfd_ ? pidfd_.get() : pid_);
  (void)(pidfd_ ? syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0U) : ::kill(pid_, SIGKILL));
  siginfo_t how{};
  do {  // a stop for the tracer may be told before the end
    how.si_code = 0;
  } while (waitid(kind, child, &how, WEXITED | __WALL) == 0 ? how.si_code == CLD_TRAPPED : errno == EINTR);
  pidfd_.reset();
  pid_ = -1;
}

Status Launcher::fork_child() {
  pid_ = fork();
  if (pid_ < 0) return system_error("fork", errno);
  if (pid_ == 0) run_child(plan_);
  childs_control_.reset();
  auto pidfd = shim::open_pidfd(pid_);
  if (!pidfd) return pidfd.error();
  pidfd_ = *std::move(pidfd);
  supervisor_ = std::make_unique<Supervisor>(pid_, options_.kill_on_refusal, options_.on_refused);
  return {};
}

/// Waits until the child has reported or ended. A hang-up of the child's socket would not tell: a process that was
/// forked meanwhile may have a copy.
void Launcher::await_report() const noexcept {
  std::array<pollfd, 2> either{{{control_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}}};
  while (poll(either.data(), either.size(), -1) < 0 && errno == EINTR) continue;
}

/// After the child's import request: receives the answer in its place, and sends it its inheritance.
Status Launcher::introduce() {
  Report report;
  std::array<int, 1> connection{};
  await_report();
  const ssize_t got = shim::receive_packet(control_.get(), room_of(report), connection, MSG_DONTWAIT);
  if (got != static_cast<ssize_t>(sizeof report))
    return Error{Errc::system_error, "the child of the launcher ended before it had begun"};
  const UniqueFd socket(connection[0]);  // a private server's is a copy of socket_, so not the last
  if (report.step != Step::asked) {
    if (report.step == Step::connecting) {
      nameserver_lost_ = nameserver_seen_;
      // For a text that explains more than an errno. The child has already waited for a full queue.
      auto again = connect();
      if (!again) return again.error();
    }
    if (report.step == Step::asking && report.err == EAGAIN)
      return Error{Errc::timed_out, "nobody reads the import request: the socket is full"};
    if (report.step == Step::asking && is_closed(report.err)) {
      if (socket_) return Error{Errc::peer_gone, "the server has closed its socket"};
      Error why = shim::last_words(socket.get(), {Errc::peer_gone, "the nameserver has closed its socket"});
      nameserver_lost_ = why.code == Errc::peer_gone;
      return why;
    }
    return system_error("asking for the binding", report.err);
  }
  if (!socket)
    return Error{Errc::limit_reached,
                 "this process is out of file descriptors: it got no copy of the child's connection"};
  nameserver_seen_ = true;
  // If it is being restarted, the next child waits for this one, too, and asks no other.
  if (report.nameserver < plan_.nameservers.size()) plan_.nameservers = {plan_.nameservers[report.nameserver]};
  if (Status seized = supervisor_->seize(); !seized) return seized;

  std::vector<UniqueFd> fds;
  auto bound = receive_bound(socket.get(), fds);
  if (!bound) {
    nameserver_lost_ = !socket_ && bound.code() == Errc::peer_gone && shim::hung_up(socket.get());
    shim::close_strangers(std::move(fds), server_);
    return bound.error();
  }
  // Do not use what a private server says about itself.
  const shim::Stranger server = socket_ ? server_ : shim::Stranger{bound->server.uid};
  const shim::ClosedAside region(std::move(fds.front()), server);
  bell_ = shim::PeerSocket(std::move(fds.back()), shim::PeerSocket::Made::by_peer, server);
  if (!shim::is_socket_pair_end(bell_.get())) return Error{Errc::bad_message, "the binding's bell is not one"};
  if (shim::is_socket_pair_end(region.get()))
    return Error{Errc::bad_message, "the binding's region is not one, but a socket"};
  // Check the size here: the sealed program has no thread on which to close a region of another size aside, and its
  // exit would have to close it, too.
  auto layout = shim::RegionLayout::of(bound->classes);
  if (!layout) return layout.error();
  if (auto mapped = shim::Region::map(region.get(), *std::move(layout)); !mapped) return mapped.error();
  auto description = shim::describe_sealed_binding(request_, *bound);
  if (!description) return description.error();
  Inheritance inheritance;
  const std::string variable = std::string(shim::kSealedVariable) + '=' + description->variable;
  if (variable.size() >= inheritance.variable.size())
    return Error{Errc::limit_reached, "the binding's description is too long"};
  std::ranges::copy(variable, inheritance.variable.begin());
  const std::array<int, Inheritance::kFds> given{region.get(), description->memory.get(), bell_.get()};
  if (shim::send_packet(control_.get(), bytes_of(inheritance), given) < 0)
    return system_error("the child's inheritance", errno);
  return {};
}

/// `fds` gets the region first and the bell last. With a private server, the caller must close them aside.
Result<shim::Bound> Launcher::receive_bound(int socket, std::vector<UniqueFd>& fds) {
  const milliseconds wait = wait_.left();
  const milliseconds patience = wait > milliseconds::max() - kAnswerTime ? milliseconds::max() : wait + kAnswerTime;
  // The nameserver is trusted; a private server is not.
  const auto attachments = socket_ ? shim::Attachments::taken_in : shim::Attachments::trusted;
  auto answer = shim::receive_message(socket, patience, attachments, server_);
  if (!answer) return answer.error();
  if (!answer->has_value()) return Error{Errc::timed_out, "nobody answered the import request in time"};
  shim::BinderMessage& message = **answer;
  fds = std::move(message.fds);
  if (auto* failed = std::get_if<shim::Failed>(&message.body)) return Error{failed->code, std::move(failed->text)};
  if (message.fds_lost)
    return Error{Errc::limit_reached,
                 "this process is out of file descriptors: a binding needs three (five while it is made, if lrpcd is "
                 "outside of this process namespace)"};
  auto* bound = std::get_if<shim::Bound>(&message.body);
  if (bound == nullptr || fds.size() != (socket_ ? 2U : 3U))
    return Error{Errc::bad_message, "the answer to an import is not a binding"};
  if (socket_) {  // what a private server says about itself does not count, but what the kernel says
    if (!shim::sender_known(message, early_))
      return Error{Errc::bad_message, "the private server's credentials are missing"};
    bound->server = *message.sender;
  } else {
    const auto number = shim::number_of_introduced(socket, bound->server.pid, fds[1].get());
    if (!number) return number.error();
    bound->server.pid = *number;
  }
  return std::move(*bound);
}

/// Why the program did not run: the child has reported it, or its exit status is the errno of one of its last two
/// calls.
Error Launcher::why_not_started() {
  Report report;
  if (shim::receive_packet(control_.get(), room_of(report), {}, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof report)) {
    return report.step == Step::sealing ? why_not_installed(report.err)
                                        : system_error("arranging descriptors", report.err);
  }
  const int status = supervisor_->status();
  if (!WIFEXITED(status)) return {Errc::system_error, "the child of the launcher was killed before the program ran"};
  if (!supervisor_->has_executed()) return why_not_offered(WEXITSTATUS(status));
  return system_error("executing '" + arguments_.front() + "'", WEXITSTATUS(status));
}

}  // namespace lrpc::sealed
