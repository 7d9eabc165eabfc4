// What a program learns of a nameserver that does not answer or does not read, and that its names can be had again.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "clerk/answer_time.h"
#include "clerk/domain.h"
#include "eventually.h"
#include "refused_calls.h"
#include "scripted_nameserver.h"
#include "temporary_directory.h"

namespace lrpc::server {
namespace {

using testing_lrpc::ScriptedNameserver;

/// While it exists, the clerk waits so long for an answer.
class AnswerTime {
 public:
  explicit AnswerTime(std::chrono::milliseconds time) : before_(std::exchange(answer_time, time)) {}
  AnswerTime(const AnswerTime&) = delete;
  AnswerTime& operator=(const AnswerTime&) = delete;
  ~AnswerTime() { answer_time = before_; }

 private:
  const std::chrono::milliseconds before_;
};

/// A server that has exported "early". Only a few requests with its long declaration fit into a socket.
class ClerkAnswers : public testing::Test {
 protected:
  void SetUp() override {
    auto exported = begin_export("early");
    nameserver_.accept();
    const auto early = grant(std::move(exported));
    ASSERT_TRUE(early) << early.error().message();
    early_ = *early;
  }
  std::future<Result<ExportId>> begin_export(const std::string& name) {
    return std::async(std::launch::async, [this, name] { return domain_.clerk().export_interface(name, interface_); });
  }
  Result<ExportId> grant(std::future<Result<ExportId>> exported) {
    EXPECT_TRUE(nameserver_.next<shim::ExportRequest>());
    nameserver_.answer(shim::Exported{++granted_});
    return exported.get();
  }
  /// The error of an export, or of a withdrawal, that the nameserver leaves without an answer.
  Error error_of_export(const std::string& name) {
    const AnswerTime brief(kBriefly);
    return domain_.clerk().export_interface(name, interface_).error();
  }
  Error error_of_withdrawal(ExportId id) {
    const AnswerTime brief(kBriefly);
    return domain_.clerk().withdraw(id).error();
  }
  /// Waits until the clerk's thread has done what it is doing now.
  void let_clerk_finish() {
    std::promise<void> finished;
    const shim::Watcher::Task task([&] { finished.set_value(); });
    ASSERT_TRUE(domain_.watcher().post(task));
    finished.get_future().get();
  }
  static bool says(const Error& error, const std::string& part) { return error.text.find(part) != std::string::npos; }
  std::shared_ptr<ServedInterface> declared() {
    auto interface = std::make_shared<ServedInterface>();
    interface->pdl = &pdl_;
    return interface;
  }

  static constexpr std::chrono::milliseconds kBriefly{1};
  static constexpr AStackClass kOne{64, 0, 1};
  const AnswerTime patient_{testing_lrpc::kPatience};
  const testing_lrpc::TemporaryDirectory directory_;
  const std::string text_ = std::string(120'000, ' ');
  const Pdl pdl_{.interface = {.name = "Long"}, .classes = {&kOne, 1}, .procedures = {}, .text = text_};
  const std::shared_ptr<ServedInterface> interface_ = declared();
  ScriptedNameserver nameserver_{directory_ / "lrpcd.sock"};
  Domain domain_{{.nameserver = directory_ / "lrpcd.sock"}};
  std::uint64_t granted_ = 0;
  ExportId early_{};
};

TEST_F(ClerkAnswers, a_name_is_not_asked_for_again_until_the_nameserver_has_let_go_of_it) {
  const Error unanswered = error_of_export("late");
  EXPECT_EQ(unanswered.code, Errc::timed_out);
  EXPECT_TRUE(says(unanswered, "did not answer in time")) << unanswered.text;
  const Error again = error_of_export("late");
  EXPECT_EQ(again.code, Errc::timed_out);
  EXPECT_TRUE(says(again, "has not let go of 'late'")) << again.text;
  ASSERT_TRUE(nameserver_.next<shim::ExportRequest>());
  nameserver_.answer(shim::Exported{4711});
  const auto withdrawal = nameserver_.next<shim::WithdrawRequest>();
  ASSERT_TRUE(withdrawal) << "the second export has sent nothing";
  EXPECT_EQ(withdrawal->export_id, 4711U);
  nameserver_.answer(shim::Withdrawn{});
  EXPECT_TRUE(grant(begin_export("late")));
}

TEST_F(ClerkAnswers, a_withdrawal_without_an_answer_ends_the_connection_and_so_the_name_for_certain) {
  ASSERT_TRUE(grant(begin_export("other")));
  const Error unanswered = error_of_withdrawal(early_);
  EXPECT_EQ(unanswered.code, Errc::timed_out);
  EXPECT_TRUE(says(unanswered, "did not answer in time")) << unanswered.text;
  ASSERT_TRUE(nameserver_.next<shim::WithdrawRequest>());
  EXPECT_TRUE(nameserver_.hung_up_on());
  nameserver_.accept();
  const auto back = nameserver_.next<shim::ExportRequest>();
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name, "other");
  nameserver_.answer(shim::Exported{4711});
  EXPECT_EQ(domain_.clerk().withdraw(early_).code(), Errc::invalid_argument) << "it is withdrawn";
  EXPECT_TRUE(grant(begin_export("early"))) << "and may be exported again";
}

TEST_F(ClerkAnswers, an_export_that_the_nameserver_did_not_read_is_not_on_its_way) {
  constexpr int kMost = 10'000;  // the system's default for the size of sockets may be larger than usual
  int unanswered = 0;
  Error error = error_of_export("name-0");
  while (says(error, "did not answer in time") && ++unanswered < kMost)
    error = error_of_export("name-" + std::to_string(unanswered));
  ASSERT_EQ(error.code, Errc::timed_out);
  ASSERT_TRUE(says(error, "did not read the request in time")) << error.text;
  for (int i = 0; i < unanswered; ++i) {
    const auto request = nameserver_.next<shim::ExportRequest>();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->name, "name-" + std::to_string(i));
    nameserver_.answer(shim::Failed{Errc::name_taken, "by somebody else"});
  }
  EXPECT_TRUE(grant(begin_export("name-" + std::to_string(unanswered)))) << "nobody has to let go of it";
}

TEST_F(ClerkAnswers, an_export_that_could_not_be_sent_fails_for_that_and_may_be_tried_again_at_once) {
  bool refused = false;
  std::optional<Result<ExportId>> exported;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_sendmsg, ENOBUFS);
    if (refused) exported.emplace(domain_.clerk().export_interface("name", interface_));
  }).join();
  if (!refused) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_EQ(exported->code(), Errc::system_error);
  EXPECT_TRUE(says(exported->error(), "sendmsg")) << exported->error().text;
  EXPECT_TRUE(grant(begin_export("name")));
}

TEST_F(ClerkAnswers, names_for_whose_requests_the_socket_has_no_room_come_back_later) {
  std::set<std::string> missing{"early"};
  for (int i = 0; i < 6; ++i) {
    const std::string name = "name-" + std::to_string(i);
    ASSERT_TRUE(grant(begin_export(name)));
    missing.insert(name);
  }
  nameserver_.hang_up();
  nameserver_.accept();
  ASSERT_NO_FATAL_FAILURE(let_clerk_finish());  // it has sent what has found room
  while (!missing.empty()) {
    const auto request = nameserver_.next<shim::ExportRequest>();
    ASSERT_TRUE(request) << missing.size() << " are missing";
    EXPECT_EQ(missing.erase(request->name), 1U) << request->name;
    nameserver_.answer(shim::Exported{++granted_});
  }
}

}  // namespace
}  // namespace lrpc::server
