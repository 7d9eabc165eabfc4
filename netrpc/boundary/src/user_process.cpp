#include "lrpc/netrpc/boundary/user_process.h"

#include <optional>
#include <utility>

#include "user_boundary.client.h"

namespace lrpc::netuser {

namespace {

/// What a call has come to: the graph's refusal in its own words, or what has become of the call.
template <class Outcome>
Error why(const Outcome& outcome) {
  const auto* const refused = outcome.template raised<UserBoundary::Refused>();
  if (refused == nullptr) return outcome.error();
  const auto code = static_cast<Errc>(refused->code);
  return {describe(code) == "unknown error" || code == Errc::ok ? Errc::bad_message : code, refused->text.str()};
}

template <class Outcome>
Status status_of(const Outcome& outcome) {
  return outcome ? Status() : Status(why(outcome));
}

}  // namespace

struct UserProcess::Graph {
  explicit Graph(UserBoundary::Client it) noexcept : client(std::move(it)) {}
  UserBoundary::Client client;
  UserBoundary::Protocol protocol{};
};

UserProcess::UserProcess(std::unique_ptr<Graph> graph, Options options)
    : graph_(std::move(graph)), options_(std::move(options)) {}

Result<std::unique_ptr<UserProcess>> UserProcess::create(std::string_view name, Options options) {
  auto client = UserBoundary::Client::import("lrpc.user." + std::string(name), options.binding);
  if (!client) return client.error();
  return begin(std::make_unique<Graph>(std::move(*client)), std::move(options));
}

Result<std::unique_ptr<UserProcess>> UserProcess::create_over(UniqueFd socket, Options options) {
  auto client = UserBoundary::Client::import_over(std::move(socket), options.binding);
  if (!client) return client.error();
  return begin(std::make_unique<Graph>(std::move(*client)), std::move(options));
}

Result<std::unique_ptr<UserProcess>> UserProcess::begin(std::unique_ptr<Graph> graph, Options options) {
  if (options.threads == 0 || options.threads > kMostThreads)
    return Error{Errc::invalid_argument, "UserProcess::Options::threads is not from 1 to 4"};
  const auto created = graph->client.CreateProtocol();
  if (!created) return why(created);
  graph->protocol = created->protocol;
  std::unique_ptr<UserProcess> made(new UserProcess(std::move(graph), std::move(options)));
  made->largest_ = created->largest;
  for (unsigned i = 0; i < made->options_.threads; ++i)
    made->threads_.emplace_back([self = made.get()] { self->receive(); });
  return made;
}

UserProcess::~UserProcess() {
  closing_ = true;
  (void)graph_->client.Close(graph_->protocol);  // so that nobody waits in Await any more
  for (std::thread& thread : threads_) thread.join();
}

void UserProcess::receive() {
  std::vector<std::byte> memory(65'536);
  for (;;) {
    Buffer message(memory);
    const auto arrived = graph_->client.Await(graph_->protocol, message);
    if (!arrived) {
      if (!closing_.load() && options_.lost) options_.lost(why(arrived));
      return;
    }
    if (options_.receive)
      options_.receive(*this, {arrived->session, arrived->host, arrived->port, arrived->opened, message.contents()});
  }
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
