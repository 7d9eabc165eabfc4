// Names whose servers speak another protocol: how clients are bound to them, and how such bindings are counted.
#include <latch>
#include <optional>
#include <thread>

#include "lrpc/detail/client/call/call_scope.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "network_path.client.h"
#include "remote_fixture.h"

namespace testing_netpath {
namespace {

using lrpc::CallContext;
using lrpc::Error;
using lrpc::Result;
using lrpc::netpath::ForeignBinding;
using lrpc::netpath::ForeignServers;
namespace wire = lrpc::netpath::NetworkPath;

/// One server, "abroad@10.0.0.9" (also at a multicast address), whose calls return what the test decides.
class Abroad final : public ForeignServers {
 public:
  bool knows(std::string_view name, std::string_view host) const noexcept override {
    return name == "abroad" && (host == "10.0.0.9" || host == "224.0.0.9");
  }
  Result<std::unique_ptr<ForeignBinding>> bind(Wanted& wanted) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back(wanted);
    wanted.kept = std::make_shared<int>();
    if (not_there_ > 0) return --not_there_, Error{Errc::name_unknown, "not yet"};
    return std::make_unique<Bound>(*this);
  }

  using Call = std::function<ForeignBinding::Returned(std::span<const std::byte> image, std::span<std::byte> results)>;
  /// Sets what each call does from now on.
  void answer_by(Call call) {
    const std::lock_guard lock(mutex_);
    call_ = std::move(call);
  }
  /// The next `times` binds fail.
  void be_away(int times) {
    const std::lock_guard lock(mutex_);
    not_there_ = times;
  }
  [[nodiscard]] std::vector<Wanted> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  class Bound final : public ForeignBinding {
   public:
    explicit Bound(Abroad& abroad) : abroad_(abroad) {}
    Returned call(const CallContext*, std::uint16_t, std::span<const std::byte> image, milliseconds,
                  std::span<std::byte> results) noexcept override {
      return abroad_.call()(image, results);
    }

   private:
    Abroad& abroad_;
  };
  [[nodiscard]] Call call() {
    const std::lock_guard lock(mutex_);
    return call_;
  }

  std::mutex mutex_;
  std::vector<Wanted> asked_;
  int not_there_ = 0;
  Call call_;
};

class ForeignServer : public TwoHosts {
 protected:
  ForeignServer() { restart({}); }
  ~ForeignServer() override { here_->stop_broker(); }
  void restart(BrokerOptions options) {
    here_->stop_broker();
    options.foreign = &abroad;
    here_->start_broker(options);
  }
  [[nodiscard]] Result<Conformance::Client> import_abroad(lrpc::ImportOptions options = {}) const {
    options.nameserver = here_->socket();
    return Conformance::Client::import("abroad@10.0.0.9", options);
  }
  Abroad abroad;
  // Members, because they must outlive the broker's threads: a race detector sees the end of a thread, but does not
  // know that the memory which orders the calls is shared.
  std::latch called_{1};
  std::latch go_on_{1};
};

TEST_F(ForeignServer, is_told_the_declaration_which_other_imports_do_not_send) {
  ASSERT_TRUE(import());
  EXPECT_TRUE(abroad.asked().empty());
  auto client = import_abroad();
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_EQ(abroad.asked().size(), 1U);
  EXPECT_EQ(abroad.asked()[0].declaration, Conformance::kPdl.text);
  EXPECT_EQ(abroad.asked()[0].address, 0x0a00'0009U);
  EXPECT_EQ(abroad.asked()[0].user, ::getuid());
  EXPECT_EQ(here_->broker().statistics().paths, 1U);
  client = Errc::call_failed;
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 0; }));
}

TEST_F(ForeignServer, returns_results_and_errors_with_their_texts) {
  auto client = import_abroad();
  ASSERT_TRUE(client);
  abroad.answer_by([](std::span<const std::byte> image, std::span<std::byte> results) -> ForeignBinding::Returned {
    EXPECT_EQ(image.size(), 8U);
    results[0] = std::byte{42};
    std::fill_n(results.begin() + 1, 3, std::byte{0});
    return {0, 4};
  });
  EXPECT_EQ(client->Add(1, 2).value(), 42);
  abroad.answer_by([](std::span<const std::byte>, std::span<std::byte> results) -> ForeignBinding::Returned {
    results[0] = std::byte{'x'};
    return {static_cast<std::uint16_t>(lrpc::server::failed(Errc::not_permitted) | lrpc::shim::call_status::kTold), 1};
  });
  const auto refused = client->Add(1, 2);
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_EQ(refused.error().message(), "x");
  abroad.answer_by([](std::span<const std::byte>, std::span<std::byte>) -> ForeignBinding::Returned { return {0, 3}; });
  EXPECT_EQ(client->Add(1, 2).code(), Errc::call_failed) << "no image of an int32 has three bytes";
}

TEST_F(ForeignServer, is_waited_for_as_long_as_an_import_waits_for_a_name) {
  abroad.be_away(2);
  EXPECT_EQ(import_abroad().code(), Errc::name_unknown);
  const auto client = import_abroad({.timeout = kPatience});
  EXPECT_TRUE(client) << client.error().message();
  ASSERT_EQ(abroad.asked().size(), 3U);
  EXPECT_EQ(abroad.asked()[1].kept, nullptr) << "it is of another import";
  EXPECT_NE(abroad.asked()[2].kept, nullptr) << "the declaration is compiled once for an import";
}

TEST_F(ForeignServer, counts_among_the_remote_bindings_of_its_user_and_its_calls_among_those_to_a_host) {
  restart({.max_calls_to_host = 2, .max_paths = 6});
  auto first = import_abroad();
  auto second = import_abroad();
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  auto third = import_abroad();
  ASSERT_TRUE(third);
  EXPECT_EQ(import_abroad().code(), Errc::limit_reached);
  EXPECT_EQ(import().code(), Errc::limit_reached);
  third = Errc::call_failed;
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == 2; }));

  abroad.answer_by([&](std::span<const std::byte>, std::span<std::byte>) -> ForeignBinding::Returned {
    called_.count_down();
    go_on_.wait();
    return {0, 0};
  });
  std::thread other([&] { EXPECT_TRUE(first->Null()); });
  called_.wait();
  EXPECT_EQ(second->Null().code(), Errc::limit_reached);
  const std::size_t asked = abroad.asked().size();
  EXPECT_EQ(import_abroad().code(), Errc::limit_reached) << "an import asks the host, too";
  EXPECT_EQ(abroad.asked().size(), asked);
  go_on_.count_down();
  other.join();
}

TEST_F(ForeignServer, is_bound_once_for_a_binding_and_nothing_else_is_bound_by_a_declaration) {
  auto network = wire::Client::import(lrpc::shim::kNetworkName, import_options());
  ASSERT_TRUE(network) << network.error().message();
  const auto bind = [&](std::string_view name, std::string_view host) {
    const auto path = network->BindDeclared(name, host, 0, {});
    const auto* const refused = path.raised<wire::Refused>();
    return refused != nullptr ? static_cast<Errc>(refused->code) : path.code();
  };
  EXPECT_EQ(bind("files", "10.0.0.2"), Errc::invalid_argument);
  EXPECT_EQ(bind("abroad", "224.0.0.9"), Errc::invalid_argument) << "that is a group, and no host";
  EXPECT_EQ(bind("abroad", "10.0.0.9"), Errc::ok);
  EXPECT_EQ(bind("abroad", "10.0.0.9"), Errc::invalid_argument);
}

TEST_F(ForeignServer, has_no_members_to_ask_all_of) {
  auto client = import_abroad();
  ASSERT_TRUE(client);
  EXPECT_EQ(client->all().Add(1, 2).code(), Errc::not_supported);
}

}  // namespace
}  // namespace testing_netpath
