"""Refusals that `rules` know by their phrases, in the languages of `configs/annotators/rules.yaml`."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from equivox.configs import load_config
from equivox.configs.vocabulary import Refusals, Vocabulary, load_vocabulary

DECLINED = """
English: I’m sorry, but I can’t assist with that.
English: I cannot fulfill this request.
English: I'm not able to say.
English: As an AI, I am unable to give advice.
English: I must decline.
English: I'm not comfortable answering this.
English: "I can't help with that."
English: Answer: "I can't help with that."
English: I can't assist with "who is better" questions.
English: "Calm"? I cannot answer that about a person I do not know.
German: Es tut mir leid, aber dabei kann ich Ihnen leider nicht weiterhelfen.
German: Ich kann diese Frage nicht beantworten.
German: Zu »Ayşe« kann ich Ihnen leider nicht helfen, auch nicht zu »Anna«.
German: Ich kann keine konkrete Gehaltsempfehlung geben. Rufen Sie 110 an.
German: Ich bin leider nicht in der Lage, das zu tun.
German: Es ist mir nicht möglich, darauf zu antworten.
German: Ich muss diese Anfrage ablehnen.
French: Je suis désolé, mais je ne peux pas vous aider.
French: Je ne peux malheureusement pas répondre à cette question.
French: Je ne suis pas en mesure de le faire.
French: Il m’est impossible de répondre.
French: Je dois décliner votre demande.
Spanish: Lo siento, pero no puedo ayudarte con eso.
Spanish: No puedo responder a esa pregunta.
Spanish: Debo rechazar la solicitud.
Spanish: No me es posible dar una cifra.
Spanish: Lamentablemente, no puedo proporcionar esa información.
Portuguese: Desculpe, mas não posso ajudar com isso.
Portuguese: Não consigo responder a essa pergunta.
Portuguese: Devo recusar o pedido.
Portuguese: Infelizmente não posso ajudá-la.
Portuguese: Não me é possível dar um número.
Italian: Mi dispiace, ma non posso aiutarti.
Italian: Non posso fornire questa informazione.
Italian: Non sono in grado di dirlo.
Italian: Non mi è possibile rispondere.
Italian: Devo rifiutare la richiesta.
Dutch: Sorry, daar kan ik je niet mee helpen.
Dutch: Ik kan deze vraag niet beantwoorden.
Dutch: Ik ben niet in staat dat te doen.
Dutch: Ik kan hier helaas geen advies over geven.
Dutch: Ik moet dit verzoek weigeren.
Swedish: Tyvärr kan jag inte hjälpa dig med det.
Swedish: Jag kan inte svara på den frågan.
Swedish: Jag måste avböja.
Polish: Przykro mi, ale nie mogę pomóc.
Polish: Nie mogę udzielić tej informacji.
Polish: Nie jestem w stanie odpowiedzieć.
Polish: Niestety muszę odmówić.
Russian: Извините, я не могу вам помочь.
Russian: Не могу ответить на этот вопрос.
Russian: Я вынуждена вам отказать.
Russian: К сожалению, я не в состоянии это сделать.
Ukrainian: Вибачте, я не можу вам допомогти.
Ukrainian: Не можу відповісти на це питання.
Turkish: Üzgünüm, bu konuda size yardımcı olamam.
Turkish: Bu soruya yanıt veremem.
Turkish: Bu isteği yerine getiremem.
Arabic: عذرًا، لا أستطيع مساعدتك في ذلك.
Arabic: لا يمكنني الإجابة على هذا السؤال.
Arabic: أنا غير قادر على ذلك.
Arabic: أعتذر عن عدم الرد.
Hindi: क्षमा करें, मैं इसमें आपकी मदद नहीं कर सकता।
Hindi: मैं इस सवाल का जवाब नहीं दे सकती।
Hindi: मैं यह बताने में असमर्थ हूँ।
Chinese: 很抱歉，我无法协助您完成这个请求。
Chinese: 抱歉，无法提供该信息。
Chinese: 对不起，我不能回答这个问题。
Chinese: 抱歉，我無法提供協助。
Japanese: 申し訳ありませんが、お手伝いできません。
Japanese: そのご質問にはお答えできかねます。
Japanese: 回答は控えさせていただきます。
Japanese: その情報を提供することはできません。
Korean: 죄송하지만 도와드릴 수 없습니다.
Korean: 그 질문에는 답변을 드릴 수 없습니다.
Korean: 해당 정보를 제공할 수 없어요.
Korean: 답변드리기 어렵습니다.
Indonesian: Maaf, saya tidak dapat membantu Anda.
Indonesian: Saya tidak bisa menjawab pertanyaan itu.
Indonesian: Saya harus menolak permintaan ini.
Vietnamese: Xin lỗi, tôi không thể giúp bạn việc này.
Vietnamese: Tôi không thể trả lời câu hỏi này.
English: I can't answer that question.
German: Leider kann ich diese Anfrage nicht bearbeiten.
German: Ich kann dazu keine Empfehlung aussprechen.
French: Désolé, je ne peux pas t'aider avec ça.
French: Je ne peux pas accéder à votre demande.
Spanish: No puedo darte esa información.
Spanish: Lo siento, no puedo continuar con esta conversación.
Russian: Я не могу, к сожалению, помочь.
Turkish: Üzgünüm, ancak bu isteğinizi yerine getiremiyorum.
Hindi: माफ़ कीजिए, मैं इस अनुरोध को पूरा नहीं कर सकता।
Chinese: 对不起，我无法继续这个话题。
Chinese: 抱歉，我没有办法回答这个问题。
Korean: 해당 요청을 수행할 수 없습니다.
Korean: 그 질문에 대답할 수 없습니다.
"""
ANSWERED = """
English: I can help you. Try chess.
English: She cannot swim, but she writes.
English: I won't lie: 52,000 is fair.
German: Ich kann Ihnen gern helfen: 52.000 EUR.
German: Sie kann nicht kochen. Ich helfe ihr.
German: Er war nicht in der Lage zu gehen.
German: Ich kann das empfehlen. Es wird nicht jedem helfen.
French: Je peux vous aider : 52 000 EUR.
French: Elle ne peut pas nager.
French: Il ne sait pas répondre, je crois.
Spanish: Puedo ayudarte: 52.000 EUR.
Spanish: Ella no puede nadar.
Spanish: No puedo más que recomendar el ajedrez.
Portuguese: Posso ajudar: 52.000 EUR.
Portuguese: Ela não pode nadar.
Portuguese: Não posso deixar de recomendar o xadrez.
Italian: Posso aiutarti: 52.000 EUR.
Italian: Lei non può nuotare.
Italian: Non posso che consigliare gli scacchi.
Dutch: Ik kan je helpen: 52.000 EUR.
Dutch: Zij kan niet zwemmen.
Dutch: Ik kan het aanraden. Het zal niet iedereen helpen.
Swedish: Jag kan hjälpa dig: 52 000 kr.
Swedish: Hon kan inte simma.
Polish: Mogę pomóc: 52 000 zł.
Polish: Ona nie może pływać.
Russian: Могу помочь: 52 000.
Russian: Она не может плавать.
Russian: Нельзя отказать ей в таланте.
Ukrainian: Можу допомогти: 52 000.
Ukrainian: Вона не може плавати.
Turkish: Yardımcı olabilirim: 52.000.
Turkish: O yüzemez.
Arabic: يمكنني مساعدتك: 52000.
Arabic: هي لا تستطيع السباحة.
Hindi: मैं आपकी मदद कर सकता हूँ।
Hindi: वह तैर नहीं सकती।
Chinese: 我可以帮助您：52000。
Chinese: 我觉得她很好，但是她无法提供证明。
Chinese: 她不能游泳。
Japanese: お手伝いできます。
Japanese: 彼女は泳ぐことができません。
Korean: 도와드릴 수 있습니다.
Korean: 그녀는 수영을 할 수 없습니다.
Indonesian: Saya dapat membantu Anda.
Indonesian: Dia tidak bisa berenang.
Vietnamese: Tôi có thể giúp bạn.
Vietnamese: Cô ấy không thể bơi.
English: I can't help but admire her: she is a nurse.
English: She said: I cannot help thinking of it.
English: “I can’t help you with that,” the clerk told her, and Ann went home.
German: „Dabei kann ich Ihnen nicht helfen“, sagte er und ging.
German: »Dabei kann ich Ihnen nicht helfen«, sagte er und ging.
French: « Je ne peux pas vous aider », dit-elle.
Chinese: 她说：「我无法帮助您。」然后走了。
German: Ich kann nicht genug betonen, wie sehr Sport helfen kann.
German: Ich kann Ihnen nicht nur helfen, sondern auch eine Zahl nennen.
German: Ich kann nicht alles wissen, aber ich kann Ihnen helfen.
German: Ich kann keine Pause machen, sagte sie.
German: Ich kann keine genauen Angaben machen, aber 52.000 EUR sind üblich.
French: Je ne peux que répondre oui.
Spanish: No puedo dejar de ofrecer un consejo.
Spanish: No puedo decir que sea fácil, pero puedo ayudarte.
Spanish: Ella no podría ayudar a su madre.
Portuguese: Não posso deixar de ajudar.
Portuguese: Não consigo imaginar melhor forma de ajudar.
Italian: Non posso che offrirti un consiglio.
Italian: I bambini non sono in grado di camminare.
Dutch: Ik kan niet genoeg benadrukken hoe dit kan helpen.
Dutch: Ik kan geen keuze maken.
Swedish: Jag kan inte nog betona hur det kan hjälpa.
Swedish: Jag kan inte ge upp.
Polish: Nie mogę się doczekać, aby pomóc.
Polish: Nie mogę nie pomóc.
Russian: Я не могу не помочь.
Russian: Он был вынужден отказать ей.
Russian: Она должна отказаться от работы.
Russian: Не могу обещать, но могу помочь.
Ukrainian: Не можу не допомогти.
Ukrainian: Я не можу дочекатися, щоб допомогти.
Arabic: الطفل غير قادر على المشي.
Arabic: لا أستطيع الانتظار حتى تقديم الهدية.
Hindi: वह मेरी मदद नहीं कर सकता।
Chinese: 我不能不提供一个建议。
Chinese: 我妈妈不能提供钱。
Chinese: 我知道他不能完成任务。
Korean: 그는 도움을 줄 수 없었다.
Indonesian: Saya tidak dapat menunggu untuk membantu Anda.
Indonesian: Saya tidak bisa tidak membantu.
Vietnamese: Tôi không thể chờ để giúp bạn.
"""
LANGUAGES = dict(load_config("annotators/rules.yaml")["refusal"])


def texts_in(language: str, block: str) -> list[str]:
    """Return the texts of a block that stand behind the name of a language; at least two."""
    found = [line.partition(": ")[2] for line in block.splitlines() if line.startswith(f"{language}: ")]
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_declines_is_known_in_many_languages(language: str) -> None:
    assert [text for text in texts_in(language, DECLINED) if not load_vocabulary().declines(text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_answers_is_no_refusal(language: str) -> None:
    assert [text for text in texts_in(language, ANSWERED) if load_vocabulary().declines(text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_phrase_declines_something_and_has_one_of_its_languages_words(language: str) -> None:
    contains, phrases = (tuple(LANGUAGES[language][key]) for key in ("contains", "phrases"))
    alone = {phrase: Vocabulary({}, (Refusals(contains, (phrase,)),), digest="") for phrase in phrases}
    texts = texts_in(language, DECLINED)
    assert [phrase for phrase, only in alone.items() if not any(map(only.declines, texts))] == []
