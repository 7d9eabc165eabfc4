// Interfaces that declare names which the generated code has or uses: calls and replies work.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "taken_procedures.client.h"
#include "taken_procedures.server.h"
#include "taken_types.client.h"
#include "taken_types.server.h"

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text(const lrpc::Buffer& buffer) { return {reinterpret_cast<const char*>(buffer.data()), buffer.size()}; }

// --- Types -----------------------------------------------------------------------------------------------------------

Client::Client sample(std::int32_t number) {
  return {.Client = number, .layout = Client::layout::lrpc, .std = "std", .lrpc = number + 1};
}

struct TypesServer {
  struct all {};
  struct binding {};
  struct all_tag {};
  std::shared_ptr<all_tag> granted = std::make_shared<all_tag>();
  Client::layout noted{};
  std::string told{};

  // NOLINTBEGIN(performance-unnecessary-value-param): as procedures take it
  lrpc::Result<Client::PResults_, Client::export_to, Client::serve_over> P(
      lrpc::CallContext& context, const Client::Client& given, Client::layout layout, Client::kPdl number,
      Client::start& start, all& /*object*/, std::shared_ptr<binding> closed, const lrpc::String<9>& std,
      std::span<const std::byte> lrpc, const Client::P_outcome& outcome, Client::PResults& results,
      lrpc::Buffer& buffer) {
    // NOLINTEND(performance-unnecessary-value-param)
    if (closed == nullptr || given != sample(4)) return lrpc::Errc::bad_handle;
    if (number == 1) return lrpc::raise(Client::serve_over{});
    if (number == 2) return lrpc::raise(Client::export_to{.Client = given, .kPdl = number});
    results.P_outcome.PResults = outcome.PResults + number;
    results.std = static_cast<std::int32_t>(std.size() + lrpc.size());
    start.start.Client = 40;
    (void)buffer.assign(lrpc);
    return Client::PResults_{.Implementation = {.import_over = {layout, layout}, .export_to = 9},
                             .import_over = given,
                             .export_to = number,
                             .all_tag = context.grant<Client::all_tag>(granted)};
  }
  Client::Client Single(lrpc::CallContext& context, const Client::string_field& string_field) {
    auto client = Client::callback_(context);
    if (!client) return sample(0);
    Client::serve_callbacks changed{.callback = Client::callback::callback, .value = 5};
    const auto answer = (*client)->P(6, Client::callback::serve_callbacks, changed, bytes("std"));
    told = answer ? std::string(string_field.value.view()) : std::string(answer.error().message());
    return sample(answer ? changed.value + answer->PResults.std : 0);
  }
  void Note(lrpc::CallContext& /*context*/, Client::layout layout, const lrpc::String<9>& /*lrpc*/) { noted = layout; }
};
static_assert(Client::Implementation_<TypesServer>);

struct TypesCallback {
  Client::Callback_::PResults_ P(lrpc::CallContext& /*context*/, Client::Callback number, Client::callback callback,
                                 Client::serve_callbacks& changed, std::span<const std::byte> std) {
    changed.value = number;
    changed.callback = callback;
    return {.PResults = {.P_outcome = {}, .std = static_cast<std::int32_t>(std.size())}, .layout = Client::layout::std};
  }
};

TEST(TakenNames, are_types_fields_and_parameters) {
  TypesServer implementation;
  lrpc::Server server;
  ASSERT_TRUE(Client::export_to_(server, "types", implementation));
  auto client = Client::Client_::import("types", {.server = &server});
  ASSERT_TRUE(client);
  auto& context = client->binding_().object().context();
  const auto handle = context.grant<Client::all>(std::make_shared<TypesServer::all>());

  Client::start start{.start = sample(1), .Client = {.import_over = {Client::layout::std, Client::layout::std}}};
  Client::PResults results;
  std::array<std::byte, 9> memory{};
  lrpc::Buffer buffer(memory);
  const auto call = [&](Client::kPdl number) {
    return client->P(sample(4), Client::layout::std, number, start, handle,
                     context.grant<Client::binding>(std::make_shared<TypesServer::binding>()), "four", bytes("five5"),
                     {.PResults = 20}, results, buffer);
  };
  const auto got = call(3);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(start.start.Client, 40);
  EXPECT_EQ(results, (Client::PResults{.P_outcome = {.PResults = 23}, .std = 9}));
  EXPECT_EQ(text(buffer), "five5");
  EXPECT_EQ(got->import_over, sample(4));
  EXPECT_EQ(got->Implementation.import_over[1], Client::layout::std);
  EXPECT_EQ(context.resolve<TypesServer::all_tag>(got->all_tag), implementation.granted);
  EXPECT_NE(call(1).raised<Client::serve_over>(), nullptr);
  const auto raised = call(2);
  ASSERT_NE(raised.raised<Client::export_to>(), nullptr);
  EXPECT_EQ(raised.raised<Client::export_to>()->Client, sample(4));
  EXPECT_EQ(call(10).code(), lrpc::Errc::argument_out_of_range);
  EXPECT_TRUE(Client::layout_::is_kPdl(9) && !Client::layout_::is_kPdl(10));

  ASSERT_TRUE(client->Note(Client::layout::lrpc, "lrpc"));
  EXPECT_EQ(implementation.noted, Client::layout::lrpc);
  TypesCallback called_back;
  lrpc::Server client_domain;
  ASSERT_TRUE(client->serve_callbacks_(client_domain, called_back));
  context.callback_port().server = &client_domain;
  EXPECT_EQ(client->start_().Single({.value = "one"}).finish()->Client, 6 + 3);
  EXPECT_EQ(implementation.told, "one");
  EXPECT_EQ(client->all_().Single({.value = "all"})->replies.front().result->Client, 6 + 3);
  EXPECT_EQ(Client::kPdl_.callback, &Client::Callback_::kPdl_);
}

// --- Procedures ------------------------------------------------------------------------------------------------------

namespace taken = layout::start::taken;
using Answer = lrpc::Result<std::int32_t, taken::Failed>;

struct ProceduresServer {
  struct Open {};
  std::shared_ptr<Open> granted = std::make_shared<Open>();
  int opened = 0;
  std::string bound_to{};

  std::int32_t Client(lrpc::CallContext&, std::int32_t a) { return a + 1; }
  Answer Implementation(lrpc::CallContext&, std::int32_t a) {
    if (a < 0) return lrpc::raise(taken::Failed{.std = a});
    return a + 2;
  }
  taken::Mode kPdl(lrpc::CallContext&, taken::Mode a) {
    return a == taken::Mode::std ? taken::Mode::lrpc : taken::Mode::std;
  }
  lrpc::String<9> layout(lrpc::CallContext&, const lrpc::String<9>& a) { return a; }
  void export_to(lrpc::CallContext&, std::span<const std::byte> a, lrpc::Buffer& b) { (void)b.assign(a); }
  void serve_over(lrpc::CallContext&, std::int32_t& a) { ++a; }
  taken::Open import_over(lrpc::CallContext& context) { return context.grant<taken::Open>(granted); }
  std::int32_t start(lrpc::CallContext&, Open& a) { return &a == granted.get() ? 1 : 0; }
  // NOLINTNEXTLINE(performance-unnecessary-value-param): as procedures take it
  void all(lrpc::CallContext&, std::shared_ptr<Open> a) { opened = a == granted ? 1 : -1; }
  void binding(lrpc::CallContext&, const lrpc::String<9>& a) { bound_to = a.view(); }
  Answer Callback(lrpc::CallContext& context) {
    auto client = taken::callback_(context);
    if (!client) return client.error();
    auto mode = taken::Mode::std;
    const bool well = (*client)->Implementation() && (*client)->kPdl() && (*client)->start() && (*client)->all() &&
                      (*client)->binding() && (*client)->import_over() && (*client)->Callback() &&
                      (*client)->std(mode) && mode == taken::Mode::lrpc && (*client)->layout("back") &&
                      (*client)->taken(1).value() == 2;
    const auto failed = (*client)->Client(7);
    if (const auto* raised = failed.raised<taken::Failed>(); raised != nullptr && well) return lrpc::raise(*raised);
    return 0;
  }
  void callback(lrpc::CallContext&) {}
  std::int32_t serve_callbacks(lrpc::CallContext&, std::int32_t a, std::int32_t b) { return a * 10 + b; }
  lrpc::Result<taken::lrpcResults, taken::Failed> lrpc(::lrpc::CallContext&, std::int32_t a,
                                                       const ::lrpc::String<9>& b) {
    return taken::lrpcResults{.sum = a + static_cast<std::int32_t>(b.size()), .mode = taken::Mode::lrpc};
  }
  std::int32_t std(::lrpc::CallContext&, std::int32_t a, ::std::span<const ::std::byte> b) {
    return a + static_cast<std::int32_t>(b.size());
  }
  std::int32_t taken(::lrpc::CallContext&, std::int32_t a) { return 2 * a; }
  taken::AResults_ A(lrpc::CallContext&, std::int32_t a, std::int32_t b) { return {.b = b, .c = a}; }
  std::int32_t A_outcome(lrpc::CallContext&) { return 5; }
  std::int32_t AResults(lrpc::CallContext&) { return 6; }
  using Text = const lrpc::String<4>&;
  lrpc::String<12> Q(lrpc::CallContext&, Text a, Text b, Text c) { return joined({a.view(), b.view(), c.view()}); }
  lrpc::String<12> Q_a(lrpc::CallContext&, Text a, Text b) { return joined({a.view(), b.view()}); }
  lrpc::String<12> Q_call(lrpc::CallContext&, Text a, Text b) { return joined({a.view(), b.view()}); }
  std::int32_t bound(lrpc::CallContext&) { return 7; }

 private:
  static lrpc::String<12> joined(std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view part : parts) all += part;
    return lrpc::String<12>(all);
  }
};
static_assert(taken::Implementation_<ProceduresServer>);

struct ProceduresCallback {
  Answer Client(lrpc::CallContext&, std::int32_t a) { return lrpc::raise(taken::Failed{.std = a}); }
  void Implementation(lrpc::CallContext&) {}
  void kPdl(lrpc::CallContext&) {}
  lrpc::String<9> layout(lrpc::CallContext&, const lrpc::String<9>& a) { return a; }
  void start(lrpc::CallContext&) {}
  void all(lrpc::CallContext&) {}
  void binding(lrpc::CallContext&) {}
  void import_over(lrpc::CallContext&) {}
  void Callback(lrpc::CallContext&) {}
  void std(lrpc::CallContext&, taken::Mode& a) { a = taken::Mode::lrpc; }
  std::int32_t taken(lrpc::CallContext&, std::int32_t a) { return 2 * a; }
};

TEST(TakenNames, are_procedures) {
  ProceduresServer implementation;
  lrpc::Server server;
  ASSERT_TRUE(taken::export_to_(server, "procedures", implementation));
  auto client = taken::Client_::import_over_(lrpc::UniqueFd(), {.server = &server});
  ASSERT_TRUE(client);

  EXPECT_EQ(client->Client(1).value(), 2);
  EXPECT_EQ(client->Implementation(1).value(), 3);
  EXPECT_EQ(client->Implementation(-1).raised<taken::Failed>()->std, -1);
  EXPECT_EQ(client->kPdl(taken::Mode::std).value(), taken::Mode::lrpc);
  EXPECT_EQ(client->layout("text")->view(), "text");
  std::array<std::byte, 9> memory{};
  lrpc::Buffer buffer(memory);
  ASSERT_TRUE(client->export_to(bytes("bytes"), buffer));
  EXPECT_EQ(text(buffer), "bytes");
  std::int32_t number = 1;
  ASSERT_TRUE(client->serve_over(number));
  EXPECT_EQ(number, 2);
  const auto handle = client->import_over();
  ASSERT_TRUE(handle);
  EXPECT_EQ(client->start(*handle).value(), 1);
  ASSERT_TRUE(client->all(*handle));
  EXPECT_EQ(implementation.opened, 1);
  ASSERT_TRUE(client->binding("bound"));
  EXPECT_EQ(implementation.bound_to, "bound");
  ASSERT_TRUE(client->callback());
  EXPECT_EQ(client->serve_callbacks(1, 2).value(), 12);
  EXPECT_EQ(client->lrpc(1, "two")->sum, 4);
  EXPECT_EQ(client->std(1, bytes("two")).value(), 4);
  EXPECT_EQ(client->taken(4).value(), 8);
  EXPECT_EQ(client->A(1, 2).value(), (taken::AResults_{.b = 2, .c = 1}));
  EXPECT_EQ(client->A_outcome().value(), 5);
  EXPECT_EQ(client->AResults().value(), 6);
  EXPECT_EQ(client->Q("a", "b", "c")->view(), "abc");
  EXPECT_EQ(client->Q_a("d", "e")->view(), "de");
  EXPECT_EQ(client->Q_call("f", "g")->view(), "fg");
  EXPECT_EQ(client->bound().value(), 7);
  EXPECT_EQ(client->start_().Client(1).finish().value(), 2);
  EXPECT_EQ(client->all_().Client(1)->replies.front().result.value(), 2);

  ProceduresCallback called_back;
  lrpc::Server client_domain;
  ASSERT_TRUE(client->serve_callbacks_(client_domain, called_back));
  client->binding_().object().context().callback_port().server = &client_domain;
  const auto answer = client->Callback();
  ASSERT_NE(answer.raised<taken::Failed>(), nullptr) << answer.error().message();
  EXPECT_EQ(answer.raised<taken::Failed>()->std, 7);
}

}  // namespace
