#include "lrpc/netrpc/user/user_process.h"

#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "lrpc/netrpc/user/user_object.h"
#include "user_calls.client.h"

namespace lrpc::netuser {

namespace {

/// Why a call failed: the graph's refusal with its text, or the error of the call itself.
template <class Outcome>
Error why(const Outcome& outcome) {
  const auto* const refused = outcome.template raised<UserCalls::Refused>();
  if (refused == nullptr) return outcome.error();
  const auto code = static_cast<Errc>(refused->code);
  return {describe(code) == "unknown error" || code == Errc::ok ? Errc::bad_message : code, refused->text.str()};
}

template <class Outcome>
Status status_of(const Outcome& outcome) {
  return outcome ? Status() : Status(why(outcome));
}

/// Bytes of the longest message that Await returns.
constexpr std::size_t kLongestMessage = 65'536;
/// How long the destructor waits for a graph that does not answer.
constexpr std::chrono::seconds kClosePatience{10};
/// The pause before Await is called again after an error other than a timeout.
constexpr std::chrono::milliseconds kPause{10};

/// Whether no Await of this process can return a message any more.
bool is_the_end(Errc code) {
  return code == Errc::binding_revoked || code == Errc::call_failed || code == Errc::call_cancelled ||
         code == Errc::bad_handle;
}

}  // namespace

struct UserProcess::Graph {
  explicit Graph(UserCalls::Client it) : client(std::move(it)) {}
  UserCalls::Client client;
  UserCalls::Protocol protocol{};
  const Cancellation ending;  ///< Of the receiving threads' calls.
};

UserProcess::UserProcess(std::unique_ptr<Graph> graph, Options options)
    : graph_(std::move(graph)), options_(std::move(options)) {}

Result<std::unique_ptr<UserProcess>> UserProcess::create(std::string_view name, Options options) {
  auto client = UserCalls::Client::import(exported_name(std::string(name)), options.binding);
  if (!client) return client.error();
  return begin(std::make_unique<Graph>(std::move(*client)), std::move(options));
}

Result<std::unique_ptr<UserProcess>> UserProcess::create_over(UniqueFd socket, Options options) {
  auto client = UserCalls::Client::import_over(std::move(socket), options.binding);
  if (!client) return client.error();
  return begin(std::make_unique<Graph>(std::move(*client)), std::move(options));
}

Result<std::unique_ptr<UserProcess>> UserProcess::begin(std::unique_ptr<Graph> graph, Options options) try {
  if (options.threads == 0 || options.threads > kMostThreads)
    return Error{Errc::invalid_argument, "UserProcess::Options::threads is not from 1 to 4"};
  const auto created = graph->client.CreateProtocol();
  if (!created) return why(created);
  graph->protocol = created->protocol;
  std::unique_ptr<UserProcess> made(new UserProcess(std::move(graph), std::move(options)));
  made->largest_ = created->largest;
  made->threads_.reserve(made->options_.threads);
  for (unsigned i = 0; i < made->options_.threads; ++i) {
    std::vector<std::byte> memory(kLongestMessage);  // here, where the caller gets the error
    made->threads_.emplace_back([self = made.get(), memory = std::move(memory)]() mutable { self->receive(memory); });
  }
  return made;
} catch (const std::bad_alloc&) {
  return Errc::limit_reached;
} catch (const std::system_error&) {
  return Error{Errc::limit_reached, "no thread can be started that receives messages"};
}

UserProcess::~UserProcess() {
  closing_ = true;
  {
    const CallScope scope(fresh, kClosePatience);  // not bounded by the caller's scopes: only Close ends the Awaits
    if (!graph_->client.Close(graph_->protocol)) graph_->ending.cancel();
  }
  for (std::thread& thread : threads_) thread.join();
}

void UserProcess::lose(const Error& why) {
  if (!closing_.load() && options_.lost) options_.lost(why);
}

void UserProcess::receive(std::span<std::byte> memory) try {
  const CallScope scope(fresh, graph_->ending);
  while (!closing_.load()) {
    Buffer message(memory);
    const auto arrived = graph_->client.Await(graph_->protocol, message);
    if (!arrived) {
      const Error error = why(arrived);
      if (is_the_end(error.code)) return lose(error);
      // call_aborted: it has waited for call_timeout already.
      if (error.code != Errc::call_aborted) std::this_thread::sleep_for(kPause);
      continue;
    }
    if (options_.receive)
      options_.receive(*this, {arrived->session, arrived->host, arrived->port, arrived->opened, message.contents()});
  }
} catch (const std::bad_alloc&) {
  lose(Error{Errc::limit_reached, {}});
}

Status UserProcess::enable() { return status_of(graph_->client.Enable(graph_->protocol, true)); }
Status UserProcess::disable() { return status_of(graph_->client.Enable(graph_->protocol, false)); }

Result<UserProcess::SessionNumber> UserProcess::open(std::uint32_t host, std::uint16_t port) {
  const auto opened = graph_->client.Open(graph_->protocol, host, port);
  if (!opened) return why(opened);
  return SessionNumber{*opened};
}

Status UserProcess::push(SessionNumber session, std::span<const std::byte> message) {
  return status_of(graph_->client.Push(graph_->protocol, session, message));
}

Result<UserProcess::Sizes> UserProcess::sizes(SessionNumber session) {
  const auto sizes = graph_->client.Sizes(graph_->protocol, session);
  if (!sizes) return why(sizes);
  return Sizes{sizes->largest, sizes->uncut};
}

Status UserProcess::close(SessionNumber session) {
  return status_of(graph_->client.CloseSession(graph_->protocol, session));
}

}  // namespace lrpc::netuser
