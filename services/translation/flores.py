"""The languages that NLLB-200 translates, by FLORES-200 code: ISO 639-3, underscore, ISO 15924 script.

The codes are NLLB's language tokens, in the order of its vocabulary. Where the token and the FLORES-200 table differ
(Santali is written in Ol Chiki, its token says ``sat_Beng``), the token is here.
"""

from collections.abc import Mapping
from typing import Final

ENGLISH: Final = "eng_Latn"

_TABLE: Final = """
ace_Arab Acehnese (Arabic script); ace_Latn Acehnese; acm_Arab Mesopotamian Arabic; acq_Arab Ta'izzi-Adeni Arabic;
aeb_Arab Tunisian Arabic; afr_Latn Afrikaans; ajp_Arab South Levantine Arabic; aka_Latn Akan; amh_Ethi Amharic;
apc_Arab North Levantine Arabic; arb_Arab Modern Standard Arabic; ars_Arab Najdi Arabic; ary_Arab Moroccan Arabic;
arz_Arab Egyptian Arabic; asm_Beng Assamese; ast_Latn Asturian; awa_Deva Awadhi; ayr_Latn Central Aymara;
azb_Arab South Azerbaijani; azj_Latn North Azerbaijani; bak_Cyrl Bashkir; bam_Latn Bambara; ban_Latn Balinese;
bel_Cyrl Belarusian; bem_Latn Bemba; ben_Beng Bengali; bho_Deva Bhojpuri; bjn_Arab Banjar (Arabic script);
bjn_Latn Banjar; bod_Tibt Standard Tibetan; bos_Latn Bosnian; bug_Latn Buginese; bul_Cyrl Bulgarian; cat_Latn Catalan;
ceb_Latn Cebuano; ces_Latn Czech; cjk_Latn Chokwe; ckb_Arab Central Kurdish; crh_Latn Crimean Tatar; cym_Latn Welsh;
dan_Latn Danish; deu_Latn German; dik_Latn Southwestern Dinka; dyu_Latn Dyula; dzo_Tibt Dzongkha; ell_Grek Greek;
eng_Latn English; epo_Latn Esperanto; est_Latn Estonian; eus_Latn Basque; ewe_Latn Ewe; fao_Latn Faroese;
pes_Arab Western Persian; fij_Latn Fijian; fin_Latn Finnish; fon_Latn Fon; fra_Latn French; fur_Latn Friulian;
fuv_Latn Nigerian Fulfulde; gla_Latn Scottish Gaelic; gle_Latn Irish; glg_Latn Galician; grn_Latn Guarani;
guj_Gujr Gujarati; hat_Latn Haitian Creole; hau_Latn Hausa; heb_Hebr Hebrew; hin_Deva Hindi; hne_Deva Chhattisgarhi;
hrv_Latn Croatian; hun_Latn Hungarian; hye_Armn Armenian; ibo_Latn Igbo; ilo_Latn Ilocano; ind_Latn Indonesian;
isl_Latn Icelandic; ita_Latn Italian; jav_Latn Javanese; jpn_Jpan Japanese; kab_Latn Kabyle; kac_Latn Jingpho;
kam_Latn Kamba; kan_Knda Kannada; kas_Arab Kashmiri (Arabic script); kas_Deva Kashmiri (Devanagari script);
kat_Geor Georgian; knc_Arab Central Kanuri (Arabic script); knc_Latn Central Kanuri; kaz_Cyrl Kazakh; kbp_Latn Kabiye;
kea_Latn Kabuverdianu; khm_Khmr Khmer; kik_Latn Kikuyu; kin_Latn Kinyarwanda; kir_Cyrl Kyrgyz; kmb_Latn Kimbundu;
kon_Latn Kikongo; kor_Hang Korean; kmr_Latn Northern Kurdish; lao_Laoo Lao; lvs_Latn Standard Latvian;
lij_Latn Ligurian; lim_Latn Limburgish; lin_Latn Lingala; lit_Latn Lithuanian; lmo_Latn Lombard; ltg_Latn Latgalian;
ltz_Latn Luxembourgish; lua_Latn Luba-Kasai; lug_Latn Ganda; luo_Latn Luo; lus_Latn Mizo; mag_Deva Magahi;
mai_Deva Maithili; mal_Mlym Malayalam; mar_Deva Marathi; min_Latn Minangkabau; mkd_Cyrl Macedonian;
plt_Latn Plateau Malagasy; mlt_Latn Maltese; mni_Beng Meitei (Bengali script); khk_Cyrl Halh Mongolian; mos_Latn Mossi;
mri_Latn Maori; zsm_Latn Standard Malay; mya_Mymr Burmese; nld_Latn Dutch; nno_Latn Norwegian Nynorsk;
nob_Latn Norwegian Bokmål; npi_Deva Nepali; nso_Latn Northern Sotho; nus_Latn Nuer; nya_Latn Nyanja; oci_Latn Occitan;
gaz_Latn West Central Oromo; ory_Orya Odia; pag_Latn Pangasinan; pan_Guru Eastern Panjabi; pap_Latn Papiamento;
pol_Latn Polish; por_Latn Portuguese; prs_Arab Dari; pbt_Arab Southern Pashto; quy_Latn Ayacucho Quechua;
ron_Latn Romanian; run_Latn Rundi; rus_Cyrl Russian; sag_Latn Sango; san_Deva Sanskrit; sat_Beng Santali;
scn_Latn Sicilian; shn_Mymr Shan; sin_Sinh Sinhala; slk_Latn Slovak; slv_Latn Slovenian; smo_Latn Samoan;
sna_Latn Shona; snd_Arab Sindhi; som_Latn Somali; sot_Latn Southern Sotho; spa_Latn Spanish; als_Latn Tosk Albanian;
srd_Latn Sardinian; srp_Cyrl Serbian; ssw_Latn Swati; sun_Latn Sundanese; swe_Latn Swedish; swh_Latn Swahili;
szl_Latn Silesian; tam_Taml Tamil; tat_Cyrl Tatar; tel_Telu Telugu; tgk_Cyrl Tajik; tgl_Latn Tagalog; tha_Thai Thai;
tir_Ethi Tigrinya; taq_Latn Tamasheq; taq_Tfng Tamasheq (Tifinagh script); tpi_Latn Tok Pisin; tsn_Latn Tswana;
tso_Latn Tsonga; tuk_Latn Turkmen; tum_Latn Tumbuka; tur_Latn Turkish; twi_Latn Twi; tzm_Tfng Central Atlas Tamazight;
uig_Arab Uyghur; ukr_Cyrl Ukrainian; umb_Latn Umbundu; urd_Arab Urdu; uzn_Latn Northern Uzbek; vec_Latn Venetian;
vie_Latn Vietnamese; war_Latn Waray; wol_Latn Wolof; xho_Latn Xhosa; ydd_Hebr Eastern Yiddish; yor_Latn Yoruba;
yue_Hant Yue Chinese; zho_Hans Chinese (Simplified); zho_Hant Chinese (Traditional); zul_Latn Zulu
"""

LANGUAGES: Final[Mapping[str, str]] = dict(
    entry.strip().split(" ", 1) for entry in _TABLE.replace("\n", " ").split(";")
)
"""English names of all 202, by code."""
