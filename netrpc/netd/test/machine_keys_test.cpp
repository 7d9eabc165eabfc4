// Two machines whose keys differ, change, or are missing.
#include "netrpc/protocols/auth/aes_gcm.h"
#include "run.h"
#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

TEST_F(TwoMachines, a_machine_without_the_key_is_refused) {
  here->write_keys("10.7.0.2 " + run(std::string(LRPC_NETD) + " --generate-key").output);
  there->write_keys("10.7.0.1 " + key);
  const Process server = start_server();
  there->start_with_keys({"--export", "conformance"});
  here->start_impatient_with_keys();
  const auto refused = import();
  EXPECT_EQ(refused.code(), Errc::remote_unavailable);
  expect_said(refused.error().text, "does not answer to this host's key for it");
  expect_logged(*here, "host 10.7.0.2 does not answer to this host's key for it");
  expect_logged(*there, "host 10.7.0.1 wants to be heard, and does not have the key that is here for it");
  share_key();
  here->netd().send(SIGHUP);
  EXPECT_TRUE(eventually([&] { return import().has_value(); })) << "with the key it is not";
}

TEST_F(TwoMachines, a_machine_whose_key_has_been_changed_is_not_taken_for_one_that_is_gone) {
  const Process server = start_exported_server();
  here->start_impatient_with_keys();
  ASSERT_TRUE(import_patiently()) << here->log();
  there->write_keys("10.7.0.1 " + run(std::string(LRPC_NETD) + " --generate-key").output);
  there->netd().send(SIGHUP);
  // Once that machine has read the file.
  expect_import_refused("does not answer any more: it has no key or another one for this host now");
  share_key();
  there->netd().send(SIGHUP);
  EXPECT_TRUE(eventually([&] { return import().has_value(); })) << here->log();
}

TEST_F(TwoMachines, machines_without_a_cipher_in_common_are_told_so) {
  if (!netrpc::auth::aes_gcm::available()) GTEST_SKIP() << "this processor has no instructions for AES";
  share_key();
  const Process server = start_server();
  there->start_with_cipher("aes256-gcm", {"--export", "conformance"});
  here->start_with_cipher("chacha20-poly1305");
  expect_import_refused("has no cipher in common with this host");
  expect_logged(*here,
                "host 10.7.0.2 has no cipher in common with this one; it has aes256-gcm, and this one chacha20-");
  expect_logged(*there, "host 10.7.0.1 has no cipher in common with this one; it has chacha20-poly1305");
  here->netd().kill_and_wait();
  here->start_with_keys();
  EXPECT_TRUE(eventually([&] { return import().has_value(); })) << "which has both";
}

TEST_F(TwoMachines, a_machine_that_has_no_line_for_the_other_says_that_it_is_not_permitted) {
  here->write_keys("10.7.0.99 " + key);
  here->start_with_keys();
  const auto client = import();
  EXPECT_EQ(client.code(), Errc::not_permitted) << client.error().message();
  expect_said(client.error().text, "has no line in this host's file of keys");
  expect_logged(*here, "host 10.7.0.2 is to be called, and there is no key for it here");
}

TEST_F(TwoMachines, a_machine_that_is_not_in_the_file_of_keys_there_is_told_nothing_and_named_in_the_log_there) {
  here->write_keys("10.7.0.2 " + key);
  there->write_keys("10.7.0.99 " + key);
  there->start_with_keys({"--export", "conformance"});
  here->start_impatient_with_keys();
  const auto client = import();
  EXPECT_EQ(client.code(), Errc::remote_unavailable);
  expect_said(client.error().text, "does not answer to this host's key for it");
  expect_logged(*there, "host 10.7.0.1 wants to be heard, and there is no key for it here");
}

TEST_F(TwoMachines, one_with_a_key_and_one_without_do_not_understand_each_other) {
  there->write_keys("10.7.0.1 " + key);
  const Process server = start_server();
  there->start_with_keys({"--export", "conformance"});
  here->start_impatient("--insecure");
  EXPECT_FALSE(import());
  share_key();
  here->netd().kill_and_wait();
  here->start_impatient_with_keys();
  EXPECT_TRUE(eventually([&] { return import().has_value(); })) << "with a key on both they do";
}

TEST_F(TwoMachines, a_key_that_is_taken_away_cuts_a_machine_off) {
  const Process server = start_exported_server();
  here->start_impatient_with_keys();
  Result<Conformance::Client> client = Errc::name_unknown;
  ASSERT_TRUE(eventually([&] { return (client = import()).has_value(); })) << client.error().message();
  there->write_keys("10.7.0.99 " + key);
  there->netd().send(SIGHUP);
  EXPECT_TRUE(eventually([&] { return !client->Null(); })) << "once the signal has been taken";
  EXPECT_FALSE(import());
  share_key();
  there->netd().send(SIGHUP);
  EXPECT_TRUE(eventually([&] {
    auto again = import();
    return again && again->Null();
  }));
}

TEST_F(TwoMachines, keys_that_are_wrong_are_told_when_they_are_read_again) {
  share_key();
  there->start_with_keys();
  there->write_keys("10.7.0.1 rubbish");
  there->netd().send(SIGHUP);
  expect_logged(*there, "the keys stay as they are: ");
  expect_logged(*there, ":1: the key is not 32 bytes in base64");
}

}  // namespace
}  // namespace lrpc::netd::test
